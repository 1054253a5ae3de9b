-- The number of instances, for metrics, on PostgreSQL. Ready rows of other kinds are not
-- counted.

-- name: InstanceDepth
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
  where strpos(lane.queue, chr(9)) = 0
  limit 10000
)
select 'ready', count(*) from waits where not later
union all
select 'scheduled', count(*) from waits where later
union all
select 'waiting', count(*) from (
  (select 1 from perdure.waiting limit 10000)
  union all
  (select 1 from perdure.barriers limit 10000)
  union all
  (select 1 from perdure.partition_waiting limit 10000)
  limit 10000
) n
union all
select 'no_worker', count(*) from (select 1 from perdure.unrouted u where not {parked u.fsm} limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.finished where status in ('failed', 'quarantined') and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.finished where status in ('failed', 'quarantined') and status = 'quarantined' limit 10000) n
