-- The number of instances, for metrics, on SQLite. Ready rows of other kinds are not
-- counted.

-- name: InstanceDepth
with waits as materialized (
  select due_at > ? as later
  from (
    select due_at from perdure.ready where queue < 'alarm' || char(9)
    union all
    select due_at from perdure.ready where queue > 'alarm' || char(10) and queue < 'hook' || char(9)
    union all
    select due_at from perdure.ready where queue > 'hook' || char(10)
    limit 10000
  )
)
select 'ready', count(*) from waits where not later
union all
select 'scheduled', count(*) from waits where later
union all
select 'waiting', count(*) from (
  select 1 from perdure.waiting
  union all
  select 1 from perdure.barriers
  union all
  select 1 from perdure.partition_waiting
  limit 10000
) n
union all
select 'no_worker', count(*) from (select 1 from perdure.unrouted u where not {parked u.fsm} limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.finished where status in ('failed', 'quarantined') and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.finished where status in ('failed', 'quarantined') and status = 'quarantined' limit 10000) n
