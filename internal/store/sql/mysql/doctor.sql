-- The invariants of work, on MySQL, and counts of work. See family.sql for the marks. A
-- rule returns its violations: the id of an item, and its name or a description of the
-- problem. Counting stops at a limit, so the cost does not grow with the number of items.
-- Ready rows of other kinds are not counted.

-- name: {Kind}DoctorPlace
-- An item is in exactly one place: ready, finished, or in a lease that still owns it.
select {piece Public}, coalesce(group_concat(p.place order by p.place separator ', '), 'nowhere')
from perdure.{items} h
left join (
  select id, 'ready' as place from perdure.ready where queue > concat('{word}', char(9 using utf8mb4)) and queue < concat('{word}', char(10 using utf8mb4))
  union all
  {piece Ends}
) p on p.id = h.id
group by h.id
having count(p.place) > 1 or count(p.place) = 0 and not exists (
  select 1
  from perdure.leases l
  where locate(h.id, l.ids) > 0 and not exists (select 1 from perdure.interrupts x where x.id = h.id and x.token = l.token)
)

-- name: {Kind}DoctorReady
-- A ready row has the queue, priority and due time of its item.
select {piece Public}, 'is ready elsewhere than its queue, batch limit, priority and due time say'
from perdure.ready r
join perdure.{items} h on h.id = r.id
where r.queue > concat('{word}', char(9 using utf8mb4)) and r.queue < concat('{word}', char(10 using utf8mb4))
  and (r.queue, r.suspect, r.priority, r.due_at) <> (h.queue, h.batch_limit is not null, h.priority, h.due_at)

-- name: {Kind}DoctorStuck
-- A claim that expired long ago was returned by some process.
select {piece Public}, {piece Name}
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join perdure.{items} h on h.id = held.id
{piece LiveJoin}
where l.queue >= concat('{word}', char(9 using utf8mb4)) and l.queue < concat('{word}', char(10 using utf8mb4)) and l.expires_at < ?
  and {piece Live}
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 0 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 1 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and locate(h.id, newer.ids) > 0)

-- name: HookDoctorEnded
-- Rows that belong to a hook belong to an existing hook, and an end has the creation time
-- of its hook.
select r.id, 'ready of no hook'
from perdure.ready r
where r.queue > concat('hook', char(9 using utf8mb4)) and r.queue < concat('hook', char(10 using utf8mb4)) and not exists (select 1 from perdure.hook_items h where h.id = r.id)
union all
select coalesce(h.key, e.id), case when h.id is null then 'end of no hook' else 'end with another time of creation' end
from perdure.hook_ends e
left join perdure.hook_items h on h.id = e.id
where h.id is null or h.created_at <> e.created_at

-- name: HookDoctorAttempts
-- A hook has no more attempts than its policy allows.
select coalesce(h.key, h.id), h.name
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
where h.attempt + coalesce(e.status = 'done', 0) > h.max_attempts

-- name: HookDoctorUnhandled
-- A hook that has been due for long has a process that handles it.
select coalesce(h.key, h.id), h.name
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue > concat('hook', char(9 using utf8mb4)) and r.queue < concat('hook', char(10 using utf8mb4)) and r.due_at < ?

-- name: AlarmDoctorStray
-- A removed alarm has no ready row.
select r.id, 'ready of no alarm'
from perdure.ready r
where r.queue > concat('alarm', char(9 using utf8mb4)) and r.queue < concat('alarm', char(10 using utf8mb4)) and not exists (select 1 from perdure.alarm_items h where h.id = r.id)

-- name: InstanceDoctorUnrouted
-- No instance is parked because no process knows its definition.
select u.id, concat(u.fsm, '@', u.version, case when u.step = '' then '' else concat(' step ', u.step) end, ' in queue ', u.queue)
from perdure.unrouted u
where not {parked u.fsm}
order by u.id
limit 1000

-- name: InstanceDoctorUnread
-- The state of a due instance can be decoded.
select i.id, concat(i.fsm, '@', i.version, ': ', i.error)
from perdure.ready r
join perdure.instances i on i.id = r.id
where i.error like 'decode state:%'
order by i.id
limit 1000

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
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 0 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 1 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
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
select 'no_worker', count(*) from (select 1 from perdure.unrouted u where not {parked u.fsm} limit 10000) n
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
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 0 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 1 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 10000
) n
union all
select 'failed', count(*) from (select 1 from perdure.alarm_items where is_dead = 1 and dead = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.alarm_items where is_dead = 1 and dead = 'quarantined' limit 10000) n

-- name: Catalog
-- The tables and indexes of Perdure.
select concat('column ', c.table_name, '.', c.column_name), concat(lower(c.data_type), case when c.is_nullable = 'NO' then ' not null' else '' end)
from information_schema.columns c
join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
where c.table_schema = database() and c.table_name like 'perdure\\_%' and t.table_type = 'BASE TABLE'
union all
select concat('index ', s.table_name, '.', lower(s.index_name)), concat(case when max(s.non_unique) = 0 then 'unique ' else 'plain ' end, group_concat(s.column_name order by s.seq_in_index separator ', '))
from information_schema.statistics s
where s.table_schema = database() and s.table_name like 'perdure\\_%'
group by s.table_name, s.index_name
union all
select concat('view ', v.table_name), ''
from information_schema.views v
where v.table_schema = database() and v.table_name like 'perdure\\_%'
