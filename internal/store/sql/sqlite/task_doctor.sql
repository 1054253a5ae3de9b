-- What must hold of tasks. Each statement returns what breaks its rule: the id of
-- a task, and its type.

-- name: TaskDoctorEnded
-- A task has an end exactly if it has ended.
select cast(task_id as text), task_type
from queues_task
where (status in ('completed', 'failed', 'quarantined', 'cancelled')) <> (finished_at is not null)

-- name: TaskDoctorStuck
-- A claim that expired long ago was returned by somebody.
select cast(task_id as text), task_type
from queues_task
where status = 'processing' and lease_expires_at < ?

-- name: TaskDoctorUnhandled
-- A task that has been due for long has a worker that knows its type.
select cast(task_id as text), task_type
from queues_task
where status = 'pending' and scheduled_at < ?
