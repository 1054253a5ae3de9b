-- Tasks: commands of operators, who are members of the owner role.

-- name: TaskGet
select task_id, task_type, payload, status, attempts, crashes, outcome, enqueued_at, scheduled_at, dequeued_at, finished_at, worker, lease_expires_at
from queues.task
where task_id = ?

-- name: TaskRevive
-- An operator's retry: the task is due now, as if it had never run. An outcome that
-- its handler has not recorded is kept: the message is not sent again.
update queues.task
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, scheduled_at = queues.now(), finished_at = null, unrouted = false
where task_id = ? and status <> 'processing'

-- name: TaskHasten
-- Makes a waiting task due now. Its attempts stay.
update queues.task
set scheduled_at = least(scheduled_at, queues.now())
where task_id = ? and status = 'pending'

-- name: TaskCancel
-- A running task is cancelled too: it loses its claim, so its outcome is dropped.
update queues.task
set status = 'cancelled', finished_at = queues.now(), worker = null, token = null, lease_expires_at = null
where task_id = ? and status in ('pending', 'processing')

-- name: TaskDelete
delete from queues.task where task_id = ? and status <> 'processing'

-- name: TaskErrorList
select error_id, task_id, error_message, created_at
from queues.error

-- name: TaskErrorPurge
delete from queues.error
where error_id in (
  select error_id from queues.error where created_at <= queues.now() - ?::bigint * interval '1 microsecond' order by error_id limit 1000
)

-- name: CommsSendEmail
select comms.create_and_kickoff_email_task(?, ?, ?, ?, ?, coalesce(?::timestamptz, queues.now() + ?::bigint * interval '1 microsecond'))

-- name: CommsSendSMS
select comms.create_and_kickoff_sms_task(?, ?, ?, coalesce(?::timestamptz, queues.now() + ?::bigint * interval '1 microsecond'))

-- name: TaskClaimed
select count(*)
from (select 1 from queues.task where status = 'processing' and task_type = ? and lease_expires_at > ? limit 1) s
