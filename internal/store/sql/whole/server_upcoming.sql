-- Due and upcoming work.

-- name: UpcomingAlarms
select due_at, name, type, what
from (
  select *
  from (
    select a.due_at, case when a.actor_type = '' then a.alarm_id else a.actor_type || '/' || a.actor_id || '/' || a.alarm_id end as name, a.type, case when a.every_us is not null or a.cron is not null then 'recurring alarm' else 'alarm' end as what
    from perdure.alarm_items a
    where a.due_at > ? and a.due_at <= ? and (select true from perdure.ready r where r.queue = a.queue and r.suspect = (a.batch_limit is not null) and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id limit 1) is not null
    order by a.due_at, a.actor_type, a.actor_id, a.alarm_id
    limit ?
  ) alarms
  union all
  select *
  from (
    select due_at, case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end as name, type, 'delay' as what
    from perdure.timers
    where status = 'pending' and due_at > ? and due_at <= ?
    order by due_at, actor_type, actor_id, alarm_id
    limit ?
  ) timers
) s
order by due_at
limit ?

-- name: CountDueAlarms
select count(*), min(s.due_at)
from (
  select due_at
  from (
    select *
    from (
      select a.due_at
      from perdure.alarm_items a
      where a.due_at > ? and a.due_at <= ? and (select true from perdure.ready r where r.queue = a.queue and r.suspect = (a.batch_limit is not null) and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id limit 1) is not null
      order by a.due_at, a.actor_type, a.actor_id, a.alarm_id
      limit ?
    ) alarms
    union all
    select *
    from (
      select due_at
      from perdure.timers
      where status = 'pending' and due_at > ? and due_at <= ?
      order by due_at, actor_type, actor_id, alarm_id
      limit ?
    ) timers
  ) due
  order by due_at
  limit ?
) s
