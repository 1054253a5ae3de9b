-- The number of alarms of users, for metrics, on PostgreSQL. Counting stops at a limit, so
-- the cost does not grow with the number of alarms. Each lane of alarms is found from the
-- previous lane, along the index.

-- name: AlarmDepth
with recursive lane (queue) as (
  (select queue from perdure.ready order by queue limit 1)
  union all
  select (select r.queue from perdure.ready r where r.queue > lane.queue order by r.queue limit 1)
  from lane
  where lane.queue is not null
), waits as materialized (
  select due.due_at > ?::timestamptz as later
  from lane
  cross join lateral (select r.due_at from perdure.ready r where r.queue = lane.queue order by r.suspect, r.priority, r.due_at, r.id limit 10000) due
  where starts_with(lane.queue, 'alarm' || chr(9))
  limit 10000
)
select 'ready', count(*) from waits where not later
union all
select 'scheduled', count(*) from waits where later
union all
select 'running', count(*) from (
  select 1
  from (
    select distinct held.id as id
    from perdure.leases l
    cross join unnest(l.ids) as held (id)
    where l.queue = 'alarm' || chr(9)
  ) held
  join perdure.alarm_items h on h.id = held.id
  where h.dead is null
    and (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) is null
  limit 10000
) n
union all
select 'failed', count(*) from (select 1 from perdure.alarm_items where dead is not null and dead = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.alarm_items where dead is not null and dead = 'quarantined' limit 10000) n
