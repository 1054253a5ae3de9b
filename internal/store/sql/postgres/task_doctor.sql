-- The invariants of tasks. Each statement returns the violations of its rule: the
-- id of a task, and its type.

-- name: TaskDoctorEnded
-- A task has an end time if and only if it is finished.
select task_id::text, task_type
from queues.task
where (status in ('completed', 'failed', 'quarantined', 'cancelled')) <> (finished_at is not null)

-- name: TaskDoctorStuck
-- A claim that expired long ago was returned by some process.
select task_id::text, task_type
from queues.task
where status = 'processing' and lease_expires_at < ?

-- name: TaskDoctorUnhandled
-- A task that has been due for long has a worker that knows its type.
select task_id::text, task_type
from queues.task
where status = 'pending' and scheduled_at < ?

-- name: TaskDoctorTimes
-- No time of a task is infinite.
select task_id::text, 'queues.task.scheduled_at'
from queues.task x
where {endless x.scheduled_at}
union all
select task_id::text, 'queues.task.lease_expires_at'
from queues.task x
where {endless x.lease_expires_at}
limit 1000
