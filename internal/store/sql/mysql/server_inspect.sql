-- The lists of the server, on MySQL. Each statement scans an index from the end of the
-- previous page, and reads no more than its limit. A straight_join keeps the order of its
-- tables.

-- name: InspectHooks
select h.created_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, coalesce((select e.status from perdure.hook_ends e where e.id = h.id), case
    when exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) then 'ready'
    else 'running'
  end), h.attempt, h.due_at
from perdure.hook_items h
where h.created_at <= ?1 and (h.created_at < ?1 or h.id < ?2)
order by h.created_at desc, h.id desc
limit ?3

-- name: InspectDeadHooks
select e.created_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, e.status, h.attempt, h.due_at
from perdure.hook_ends e
straight_join perdure.hook_items h on h.id = e.id
where e.dead = 1 and e.created_at <= ?1 and (e.created_at < ?1 or e.id < ?2)
order by e.created_at desc, e.id desc
limit ?3

-- name: InspectRunningHooks
-- Few rows: as many as processes run concurrently.
select h.created_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, 'running', h.attempt, h.due_at
from (
  select distinct held.id
  from perdure.leases l
  straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
  where l.queue > concat('hook', char(9 using utf8mb4)) and l.queue < concat('hook', char(10 using utf8mb4))
) held
straight_join perdure.hook_items h on h.id = held.id
where h.created_at <= ?1 and (h.created_at < ?1 or h.id < ?2)
  and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
order by h.created_at desc, h.id desc
limit ?3

-- name: InspectWaitingHooks
select r.due_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, 'ready', h.attempt, h.due_at
from perdure.ready r
straight_join perdure.hook_items h on h.id = r.id
where r.queue = ?1 and r.suspect = ?2 and r.priority = ?3 and r.due_at >= ?4 and (r.due_at > ?4 or r.id > ?5)
order by r.due_at, r.id
limit ?6

-- name: DeadHooks
select coalesce(h.key, h.id), h.namespace || '/' || h.name, e.status, coalesce(e.error, h.error, ''), h.attempt, e.created_at, e.finished_at, h.id
from perdure.hook_ends e
straight_join perdure.hook_items h on h.id = e.id
where e.dead = 1 and e.created_at <= ?1 and (e.created_at < ?1 or e.id < ?2)
order by e.created_at desc, e.id desc
limit ?3

-- name: DeadInstances
select i.id, i.fsm, f.status, coalesce(f.error, i.error, ''), i.attempt, i.created_at, f.finished_at
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.dead = 1 and f.id < ?
order by f.id desc
limit ?

-- name: UpcomingHooks
select r.due_at, coalesce(h.key, h.id), h.namespace || '/' || h.name, case when h.attempt > 0 then 'attempt ' || (h.attempt + 1) else 'first attempt' end
from perdure.ready r
straight_join perdure.hook_items h on h.id = r.id
where r.queue = ? and r.suspect = ? and r.priority = ? and r.due_at > ? and r.due_at <= ?
order by r.due_at, r.id
limit ?

-- name: ClaimedHooks
-- Returns a row if an unexpired lease holds a hook with a name.
select count(*)
from (
  select 1
  from perdure.leases l
  straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
  straight_join perdure.hook_items h on h.id = held.id
  where l.queue = ? and h.name = ? and l.expires_at > ?
    and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 1
) s

-- name: ClaimedAlarms
-- Returns a row if an unexpired lease holds an alarm of a type.
select count(*)
from (
  select 1
  from perdure.leases l
  straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
  straight_join perdure.alarm_items h on h.id = held.id
  where l.queue = ? and h.type = ? and l.expires_at > ?
    and h.dead is null
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 1
) s

-- name: SearchHook
-- Finds a hook by the key that a user chose, or by the id of the row if it has no key. Rows
-- with a key have ids in the same range; the search skips a limited number of them.
select coalesce(h.key, h.id), h.namespace || '/' || h.name, coalesce((select e.status from perdure.hook_ends e where e.id = h.id), case
    when exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 0 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) then 'ready'
    when exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = 1 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) then 'ready'
    else 'running'
  end), h.attempt, h.due_at
from (
  select * from (select k.key, k.id, k.namespace, k.name, k.queue, k.priority, k.attempt, k.due_at from perdure.hook_items k where k.key >= ?1 and k.key < ?2 order by k.key limit 5) g1
  union all
  select * from (select * from (
    select k.key, k.id, k.namespace, k.name, k.queue, k.priority, k.attempt, k.due_at from perdure.hook_items k where k.id >= ?3 and k.id <= ?4 order by k.id limit 1000
  ) s where s.key is null limit 5) g2
) h
order by 1
limit 5

-- name: UpcomingHookGroup
-- Returns the next hook and priority that has ready rows. The lanes of hooks are adjacent.
-- Each case has its own search: a comparison of rows uses no index.
select queue, suspect, priority
from (
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect = ?2 and priority > ?3 order by priority limit 1) g1
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect > ?2 order by suspect, priority limit 1) g2
  union all
  select * from (
    select queue, suspect, priority
    from perdure.ready
    where queue > greatest(?1, concat('hook', char(9 using utf8mb4))) and queue < concat('hook', char(10 using utf8mb4))
    order by queue, suspect, priority
    limit 1
  ) g3
) s
order by queue, suspect, priority
limit 1

-- name: FacetInstanceFSM
with recursive found (value) as (
  select * from (select fsm from perdure.instances order by fsm limit 1) g1
  union all
  select (select i.fsm from perdure.instances i where i.fsm > found.value order by i.fsm limit 1)
  from found
  where found.value is not null
)
select value from found where value is not null limit 200

-- name: FacetActorType
with recursive found (value) as (
  select * from (select type from perdure.actors order by type limit 1) g1
  union all
  select (select a.type from perdure.actors a where a.type > found.value order by a.type limit 1)
  from found
  where found.value is not null
)
select value from found where value is not null limit 200

-- name: AuditStateHook
select h.name, null, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), null,
  h.attempt + coalesce(e.status = 'done', 0), case when e.id is null then h.next_attempt_at end, null
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?
