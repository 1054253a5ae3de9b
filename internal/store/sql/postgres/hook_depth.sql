-- The number of hooks, for metrics, on PostgreSQL. Counting stops at a limit, so the cost
-- does not grow with the number of hooks. Each lane of hooks is found from the previous
-- lane, along the index.

-- name: HookDepth
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
  where starts_with(lane.queue, 'hook' || chr(9))
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
    where starts_with(l.queue, 'hook' || chr(9))
  ) held
  join perdure.hook_items h on h.id = held.id
  where (select true from perdure.hook_ends e where e.id = h.id limit 1) is null
    and (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) is null
  limit 10000
) n
union all
select 'failed', count(*) from (select 1 from perdure.hook_ends where status in ('failed', 'quarantined') and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.hook_ends where status in ('failed', 'quarantined') and status = 'quarantined' limit 10000) n
