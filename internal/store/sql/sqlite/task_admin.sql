-- Tasks: commands of operators. now is always the last value.

-- name: TaskGet
select task_id, task_type, payload, status, attempts, crashes, outcome, enqueued_at, scheduled_at, dequeued_at, finished_at, worker, lease_expires_at
from queues_task
where task_id = ?1

-- name: TaskRevive
-- An operator's retry: the task is due now, as if it had never run. An outcome that
-- its handler has not recorded is kept: the message is not sent again.
update queues_task
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, scheduled_at = ?2, finished_at = null, unrouted = 0
where task_id = ?1 and status <> 'processing'

-- name: TaskHasten
-- Makes a waiting task due now. Its attempts stay.
update queues_task
set scheduled_at = min(scheduled_at, ?2)
where task_id = ?1 and status = 'pending'

-- name: TaskCancel
-- A running task is cancelled too: it loses its claim, so its outcome is dropped.
update queues_task
set status = 'cancelled', finished_at = ?2, worker = null, token = null, lease_expires_at = null
where task_id = ?1 and status in ('pending', 'processing')

-- name: TaskDelete
delete from queues_task where task_id = ? and status <> 'processing'

-- name: TaskErrorList
select error_id, task_id, error_message, created_at
from queues_error

-- name: TaskErrorPurge
delete from queues_error
where error_id in (
  select error_id from queues_error where created_at <= ?2 - ?1 order by error_id limit 1000
)

-- name: TaskClaimed
select count(*)
from (select 1 from queues_task where status = 'processing' and task_type = ? and lease_expires_at > ? limit 1) s
