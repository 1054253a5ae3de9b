-- What must hold of hooks, on MySQL. Each statement returns what breaks its rule: the id of
-- a hook, and its name or what is wrong with it.

-- name: HookDoctorPlace
-- A hook is in exactly one place: ready, at its end, or in a lease that it was not taken
-- away from.
select coalesce(h.key, h.id), coalesce(group_concat(p.place order by p.place separator ', '), 'nowhere')
from perdure.hook_items h
left join (
  select id, 'ready' as place from perdure.ready where queue > concat('hook', char(9 using utf8mb4)) and queue < concat('hook', char(10 using utf8mb4))
  union all
  select id, 'ended' from perdure.hook_ends
) p on p.id = h.id
group by h.id, h.key
having count(p.place) > 1 or count(p.place) = 0 and not exists (
  select 1
  from perdure.leases l
  where locate(h.id, l.ids) > 0 and not exists (select 1 from perdure.interrupts x where x.id = h.id and x.token = l.token)
)

-- name: HookDoctorReady
-- A ready row is where its hook says that it is.
select coalesce(h.key, h.id), 'is ready elsewhere than its queue, batch limit, priority and due time say'
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue > concat('hook', char(9 using utf8mb4)) and r.queue < concat('hook', char(10 using utf8mb4)) and (r.queue, r.suspect, r.priority, r.due_at) <> (h.queue, h.batch_limit is not null, h.priority, h.due_at)

-- name: HookDoctorEnded
-- What belongs to a hook belongs to one that exists, and an end is listed at the time of its
-- hook.
select r.id, 'ready of no hook'
from perdure.ready r
where r.queue > concat('hook', char(9 using utf8mb4)) and r.queue < concat('hook', char(10 using utf8mb4)) and not exists (select 1 from perdure.hook_items h where h.id = r.id)
union all
select coalesce(h.key, e.id), case when h.id is null then 'end of no hook' else 'end with another time of creation' end
from perdure.hook_ends e
left join perdure.hook_items h on h.id = e.id
where h.id is null or h.created_at <> e.created_at

-- name: HookDoctorAttempts
-- A hook is not tried more often than its policy has it.
select coalesce(h.key, h.id), h.name
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
where h.attempt + coalesce(e.status = 'completed', 0) > h.max_attempts

-- name: HookDoctorStuck
-- A claim that expired long ago was returned by some process.
select coalesce(h.key, h.id), h.name
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join perdure.hook_items h on h.id = held.id
where l.queue > concat('hook', char(9 using utf8mb4)) and l.queue < concat('hook', char(10 using utf8mb4)) and l.expires_at < ?
  and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and locate(h.id, newer.ids) > 0)

-- name: HookDoctorUnhandled
-- A hook that has been due for long has a process that handles it.
select coalesce(h.key, h.id), h.name
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue > concat('hook', char(9 using utf8mb4)) and r.queue < concat('hook', char(10 using utf8mb4)) and r.due_at < ?

-- name: HookDoctorKept
-- What is recorded of a hook is kept with it.
select a.id, min(a.error)
from perdure.attempts a
where a.kind = 'hook' and not exists (select 1 from perdure.hook_items h where h.id = a.id)
group by a.id
