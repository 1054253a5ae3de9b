-- Dead letters of every kind, newest first.

-- name: DeadAlarms
select case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end, type, status, coalesce(error, ''),
  attempts, created_at, due_at
from (
  select actor_type, actor_id, alarm_id, type, dead as status, error, attempt as attempts, created_at, due_at
  from perdure.alarm_items
  where dead is not null
  union all
  select actor_type, actor_id, alarm_id, type, status, error, 0, created_at, due_at
  from perdure.timers
  where status = 'quarantined'
) s
where created_at <= ? and (created_at < ? or case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end < ?)
order by created_at desc, 1 desc
limit ?

-- name: DeadActors
select type || '/' || id, type, status, coalesce(reason, ''), 0, created_at, updated_at
from perdure.actors
where status in ('error', 'quarantined') and created_at <= ? and (created_at < ? or type || '/' || id < ?)
order by created_at desc, 1 desc
limit ?

-- name: DeadInstances
select {text i.id}, i.fsm, f.status, coalesce(f.error, i.error, ''), i.attempt, i.created_at, f.finished_at
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.status in ('failed', 'quarantined') and f.id < {uuid ?}
order by f.id desc
limit ?
