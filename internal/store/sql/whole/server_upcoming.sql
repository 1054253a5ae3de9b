-- What is due and will be.

-- name: UpcomingHooks
select due_at, id, namespace || '/' || name, case when attempts > 0 then 'attempt ' || (attempts + 1) else 'first attempt' end
from perdure.hooks
where status = 'pending' and namespace = ? and name = ? and priority = ? and due_at > ? and due_at <= ?
order by due_at, id
limit ?

-- name: UpcomingAlarms
select due_at, case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end, type,
  case when kind = 'machine' then 'delay' when every_us is not null or cron is not null then 'recurring alarm' else 'alarm' end
from perdure.alarms
where status = 'pending' and due_at > ? and due_at <= ?
order by due_at
limit ?

-- name: CountDueHooks
select count(*), min(s.due_at)
from (
  select due_at
  from perdure.hooks
  where status = 'pending' and namespace = ? and name = ? and priority = ? and due_at > ? and due_at <= ?
  order by due_at
  limit ?
) s

-- name: CountDueAlarms
select count(*), min(s.due_at)
from (
  select due_at
  from perdure.alarms
  where status = 'pending' and due_at > ? and due_at <= ?
  order by due_at
  limit ?
) s
