-- What is due and will be.

-- name: UpcomingAlarms
select due_at, case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end, type,
  case when kind = 'machine' then 'delay' when every_us is not null or cron is not null then 'recurring alarm' else 'alarm' end
from perdure.alarms
where status = 'pending' and due_at > ? and due_at <= ?
order by due_at
limit ?

-- name: CountDueAlarms
select count(*), min(s.due_at)
from (
  select due_at
  from perdure.alarms
  where status = 'pending' and due_at > ? and due_at <= ?
  order by due_at
  limit ?
) s
