-- How much work there is, for metrics, on MySQL. Counting stops at a number, so that it
-- costs the same however much there is. Ready rows of other kinds do not count.

-- name: HookDepth
with waits as (
  select due_at > ? as later from perdure.ready where queue > concat('hook', char(9 using utf8mb4)) and queue < concat('hook', char(10 using utf8mb4)) limit 10000
)
select 'ready', count(*) from waits where later = 0
union all
select 'scheduled', count(*) from waits where later = 1
union all
select 'running', count(*) from (
  select 1
  from (
    select distinct held.id
    from perdure.leases l
    straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
    where l.queue > concat('hook', char(9 using utf8mb4)) and l.queue < concat('hook', char(10 using utf8mb4))
  ) held
  straight_join perdure.hook_items h on h.id = held.id
  where not exists (select 1 from perdure.hook_ends e where e.id = h.id)
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 10000
) n
union all
select 'failed', count(*) from (select 1 from perdure.hook_ends where dead = 1 and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.hook_ends where dead = 1 and status = 'quarantined' limit 10000) n

-- name: InstanceDepth
with waits as (
  select due_at > ? as later
  from (
    (select due_at from perdure.ready where queue < concat('alarm', char(9 using utf8mb4)) limit 10000)
    union all
    (select due_at from perdure.ready where queue >= concat('alarm', char(10 using utf8mb4)) and queue < concat('hook', char(9 using utf8mb4)) limit 10000)
    union all
    (select due_at from perdure.ready where queue >= concat('hook', char(10 using utf8mb4)) limit 10000)
    limit 10000
  ) due
)
select 'ready', count(*) from waits where later = 0
union all
select 'scheduled', count(*) from waits where later = 1
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
select 'no_worker', count(*) from (select 1 from perdure.unrouted limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.finished where dead = 1 and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.finished where dead = 1 and status = 'quarantined' limit 10000) n

-- name: AlarmDepth
with waits as (
  select due_at > ? as later from perdure.ready where queue > concat('alarm', char(9 using utf8mb4)) and queue < concat('alarm', char(10 using utf8mb4)) limit 10000
)
select 'ready', count(*) from waits where later = 0
union all
select 'scheduled', count(*) from waits where later = 1
union all
select 'running', count(*) from (
  select 1
  from (
    select distinct held.id
    from perdure.leases l
    straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
    where l.queue = concat('alarm', char(9 using utf8mb4))
  ) held
  straight_join perdure.alarm_items h on h.id = held.id
  where h.dead is null
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 10000
) n
union all
select 'failed', count(*) from (select 1 from perdure.alarm_items where is_dead = 1 and dead = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.alarm_items where is_dead = 1 and dead = 'quarantined' limit 10000) n
