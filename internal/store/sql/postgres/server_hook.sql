-- The server's lists of hooks, on PostgreSQL. Each statement scans an index from the end of
-- the previous page, and reads no more than its limit. A status is read by subqueries with
-- a limit: the planner would read whole tables for a join.

-- name: InspectHooks
select h.created_at, h.id::text, coalesce(h.key, h.id::text), h.namespace, h.name, coalesce((select e.status from perdure.hook_ends e where e.id = h.id), case
    when (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) then 'ready'
    else 'running'
  end), h.attempt, h.due_at
from perdure.hook_items h
where (h.created_at, h.id) < (?, ?::uuid)
order by h.created_at desc, h.id desc
limit ?

-- name: InspectDeadHooks
select e.created_at, h.id::text, coalesce(h.key, h.id::text), h.namespace, h.name, e.status, h.attempt, h.due_at
from perdure.hook_ends e
join perdure.hook_items h on h.id = e.id
where e.status in ('failed', 'quarantined') and (e.created_at, e.id) < (?, ?::uuid)
order by e.created_at desc, e.id desc
limit ?

-- name: InspectRunningHooks
-- Few rows: as many as processes run concurrently.
select h.created_at, h.id::text, coalesce(h.key, h.id::text), h.namespace, h.name, 'running', h.attempt, h.due_at
from (
  select distinct held.id as id
  from perdure.leases l
  cross join unnest(l.ids) as held (id)
  where starts_with(l.queue, 'hook' || chr(9))
) held
join perdure.hook_items h on h.id = held.id
where (h.created_at, h.id) < (?, ?::uuid)
  and (select true from perdure.hook_ends e where e.id = h.id limit 1) is null
  and (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) is null
order by h.created_at desc, h.id desc
limit ?

-- name: InspectWaitingHooks
select r.due_at, h.id::text, coalesce(h.key, h.id::text), h.namespace, h.name, 'ready', h.attempt, h.due_at
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue = ? and r.suspect = ?::boolean and r.priority = ? and (r.due_at, r.id) > (?, ?::uuid)
order by r.due_at, r.id
limit ?

-- name: DeadHooks
select coalesce(h.key, h.id::text), h.namespace || '/' || h.name, e.status, coalesce(e.error, h.error, ''), h.attempt, e.created_at, e.finished_at, h.id::text
from perdure.hook_ends e
join perdure.hook_items h on h.id = e.id
where e.status in ('failed', 'quarantined') and (e.created_at, e.id) < (?, ?::uuid)
order by e.created_at desc, e.id desc
limit ?

-- name: UpcomingHooks
select r.due_at, coalesce(h.key, h.id::text), h.namespace || '/' || h.name, case when h.attempt > 0 then 'attempt ' || (h.attempt + 1) else 'first attempt' end
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue = ? and r.suspect = ?::boolean and r.priority = ? and r.due_at > ? and r.due_at <= ?
order by r.due_at, r.id
limit ?

-- name: ClaimedHooks
-- Returns a row if an unexpired lease holds a hook with a name.
select count(*)
from (
  select 1
  from perdure.leases l
  cross join unnest(l.ids) as held (id)
  join perdure.hook_items h on h.id = held.id
  where l.queue = ? and h.name = ? and l.expires_at > ?
    and (select true from perdure.hook_ends e where e.id = h.id limit 1) is null
    and (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) is null
  limit 1
) s

-- name: SearchHook
-- Finds a hook by the key that a user chose, or by the id of the row if it has no key. Rows
-- with a key have ids in the same range; the search skips a limited number of them.
select coalesce(h.key, h.id::text), h.namespace || '/' || h.name, coalesce((select e.status from perdure.hook_ends e where e.id = h.id), case
    when (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) then 'ready'
    else 'running'
  end), h.attempt, h.due_at
from (
  (select key, id, namespace, name, queue, batch_limit, priority, attempt, due_at from perdure.hook_items where key >= $1 and key < $2 order by key limit 5)
  union all
  (select * from (
    select key, id, namespace, name, queue, batch_limit, priority, attempt, due_at from perdure.hook_items where id >= $3::uuid and id <= $4::uuid order by id limit 1000
  ) s where s.key is null limit 5)
) h
order by 1
limit 5

-- name: AuditStateHook
select h.name, null, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), null,
  h.attempt + case when e.status = 'done' then 1 else 0 end, case when e.id is null then h.next_attempt_at end, null
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?::uuid

-- name: UpcomingHookGroup
-- Returns the next hook and priority that has ready rows. Queues of instances may lie
-- between the lanes of hooks; they are skipped one by one.
with recursive found (queue, suspect, priority) as (
  (
    select r.queue, r.suspect, r.priority
    from perdure.ready r
    where (r.queue, r.suspect, r.priority) > (?, ?::boolean, ?)
    order by r.queue, r.suspect, r.priority
    limit 1
  )
  union all
  select n.queue, n.suspect, n.priority
  from found f
  cross join lateral (
    select r.queue, r.suspect, r.priority
    from perdure.ready r
    where r.queue > f.queue
    order by r.queue, r.suspect, r.priority
    limit 1
  ) n
  where not starts_with(f.queue, 'hook' || chr(9))
)
select queue, suspect, priority
from found
where starts_with(queue, 'hook' || chr(9))
limit 1
