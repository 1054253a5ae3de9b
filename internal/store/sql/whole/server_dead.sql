-- Dead letters of every kind, newest first.

-- name: DeadAlarms
select case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end, type, status, coalesce(error, ''),
  attempts, created_at, due_at
from perdure.alarms
where status in ('failed', 'quarantined') and created_at <= ? and (created_at < ? or case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end < ?)
order by created_at desc, 1 desc
limit ?

-- name: DeadActors
select type || '/' || id, type, status, coalesce(reason, ''), 0, created_at, updated_at
from perdure.actors
where status in ('error', 'quarantined') and created_at <= ? and (created_at < ? or type || '/' || id < ?)
order by created_at desc, 1 desc
limit ?
