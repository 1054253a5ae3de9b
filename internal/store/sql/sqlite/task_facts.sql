-- The recorded facts of a comms business process, by the number of its send.
-- {channel} is email or sms.

-- name: CommsHistory
select 'scheduled', attempt, task_id, '', created_at
from comms_send_{channel}_task_scheduled
where send_{channel}_task_id = ?
union all
select 'failed', attempt, 0, error_message, created_at
from comms_send_{channel}_task_failed
where send_{channel}_task_id = ?
union all
select 'succeeded', attempt, 0, '', created_at
from comms_send_{channel}_task_succeeded
where send_{channel}_task_id = ?
order by 5, 2
