-- The server's lists of hooks, on SQLite. Each statement scans an index from the end of the
-- previous page, and reads no more than its limit. A cross join keeps the order of its
-- tables.

-- name: InspectHooks
select h.created_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, coalesce((select e.status from perdure.hook_ends e where e.id = h.id), case
    when exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) then 'ready'
    else 'running'
  end), h.attempt, h.due_at
from perdure.hook_items h
where (h.created_at, h.id) < (?, ?)
order by h.created_at desc, h.id desc
limit ?

-- name: InspectDeadHooks
select e.created_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, e.status, h.attempt, h.due_at
from perdure.hook_ends e
cross join perdure.hook_items h on h.id = e.id
where e.status in ('failed', 'quarantined') and (e.created_at, e.id) < (?, ?)
order by e.created_at desc, e.id desc
limit ?

-- name: InspectRunningHooks
-- Few rows: as many as processes run concurrently.
select h.created_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, 'running', h.attempt, h.due_at
from (
  select distinct held.value as id
  from perdure.leases l, json_each(l.ids) held
  where l.queue > 'hook' || char(9) and l.queue < 'hook' || char(10)
) held
cross join perdure.hook_items h on h.id = held.id
where (h.created_at, h.id) < (?, ?)
  and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
order by h.created_at desc, h.id desc
limit ?

-- name: InspectWaitingHooks
select r.due_at, h.id, coalesce(h.key, h.id), h.namespace, h.name, 'ready', h.attempt, h.due_at
from perdure.ready r
cross join perdure.hook_items h on h.id = r.id
where r.queue = ? and r.suspect = ? and r.priority = ? and (r.due_at, r.id) > (?, ?)
order by r.due_at, r.id
limit ?

-- name: DeadHooks
select coalesce(h.key, h.id), h.namespace || '/' || h.name, e.status, coalesce(e.error, h.error, ''), h.attempt, e.created_at, e.finished_at, h.id
from perdure.hook_ends e
cross join perdure.hook_items h on h.id = e.id
where e.status in ('failed', 'quarantined') and (e.created_at, e.id) < (?, ?)
order by e.created_at desc, e.id desc
limit ?

-- name: UpcomingHooks
select r.due_at, coalesce(h.key, h.id), h.namespace || '/' || h.name, case when h.attempt > 0 then 'attempt ' || (h.attempt + 1) else 'first attempt' end
from perdure.ready r
cross join perdure.hook_items h on h.id = r.id
where r.queue = ? and r.suspect = ? and r.priority = ? and r.due_at > ? and r.due_at <= ?
order by r.due_at, r.id
limit ?

-- name: ClaimedHooks
-- Returns a row if an unexpired lease holds a hook with a name.
select count(*)
from (
  select 1
  from perdure.leases l, json_each(l.ids) held
  cross join perdure.hook_items h on h.id = held.value
  where l.queue = ? and h.name = ? and l.expires_at > ?
    and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 1
) s

-- name: SearchHook
-- Finds a hook by the key that a user chose, or by the id of the row if it has no key. Rows
-- with a key have ids in the same range; the search skips a limited number of them.
select coalesce(h.key, h.id), h.namespace || '/' || h.name, coalesce((select e.status from perdure.hook_ends e where e.id = h.id), case
    when exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id) then 'ready'
    else 'running'
  end), h.attempt, h.due_at
from (
  select * from (select key, id, namespace, name, queue, priority, attempt, due_at from perdure.hook_items where key >= ?1 and key < ?2 order by key limit 5)
  union all
  select * from (select * from (
    select key, id, namespace, name, queue, priority, attempt, due_at from perdure.hook_items where id >= ?3 and id <= ?4 order by id limit 1000
  ) s where s.key is null limit 5)
) h
order by 1
limit 5

-- name: AuditStateHook
select h.name, null, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), null,
  h.attempt + coalesce(e.status = 'done', 0), case when e.id is null then h.next_attempt_at end, null
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?

-- name: UpcomingHookGroup
-- Returns the next hook and priority that has ready rows. The lanes of hooks are adjacent.
-- SQLite seeks only by the first column of a comparison of rows, so there are three
-- comparisons.
select queue, suspect, priority
from (
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect = ?2 and priority > ?3 order by priority limit 1)
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect > ?2 order by suspect, priority limit 1)
  union all
  select * from (
    select queue, suspect, priority
    from perdure.ready
    where queue > max(?1, 'hook' || char(9)) and queue < 'hook' || char(10)
    order by queue, suspect, priority
    limit 1
  )
)
order by queue, suspect, priority
limit 1
