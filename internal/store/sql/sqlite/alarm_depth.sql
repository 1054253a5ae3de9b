-- The number of alarms of users, for metrics, on SQLite. Counting stops at a limit, so the
-- cost does not grow with the number of alarms.

-- name: AlarmDepth
with waits as materialized (
  select due_at > ? as later from perdure.ready where queue > 'alarm' || char(9) and queue < 'alarm' || char(10) limit 10000
)
select 'ready', count(*) from waits where not later
union all
select 'scheduled', count(*) from waits where later
union all
select 'running', count(*) from (
  select 1
  from (
    select distinct held.value as id
    from perdure.leases l, json_each(l.ids) held
    where l.queue = 'alarm' || char(9)
  ) held
  cross join perdure.alarm_items h on h.id = held.id
  where h.dead is null
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 10000
) n
union all
select 'failed', count(*) from (select 1 from perdure.alarm_items where dead is not null and dead = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.alarm_items where dead is not null and dead = 'quarantined' limit 10000) n
