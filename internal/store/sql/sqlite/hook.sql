-- Durable hooks, on SQLite. now is always given. Sets are passed as JSON, an array for
-- each row; a lone ; stands between the statements of one name.

-- name: HookInsert
insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
  t.at_now, case when t.at_due > t.at_now then t.at_due end, max(t.at_due, t.at_now)
from (select ?12 as at_now, coalesce(?13, ?14 + ?15) as at_due) t
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?1

-- name: HookClaim
-- Takes due rows of some lanes, the most urgent and then the oldest first, under one
-- lease. Suspects are claimed by HookSuspectClaim.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select due.id
  from jsonb_each(?8) lane, (select -1 as priority union all select 0 union all select 1) level
  join perdure.ready due on due.rowid in (
    select w.rowid
    from perdure.ready w
    where w.queue = lane.value->>0 and w.suspect = ?6 and w.priority = level.priority and w.due_at <= ?2{openable Hook w.id}
    order by w.due_at, w.id
    limit ?3
  )
  order by due.priority, due.due_at, due.id
  limit ?3
)
having count(*) > 0
;
delete from perdure.ready
where (queue, suspect, priority, due_at, id) in (
  select h.queue, ?6, h.priority, h.due_at, h.id
  from perdure.leases l, json_each(l.ids) held
  join perdure.hook_items h on h.id = held.value
  where l.token = ?4
)
;
select h.id, coalesce(h.key, h.id), h.name, h.payload, h.priority, h.policy, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at
from perdure.leases l, json_each(l.ids) held
join perdure.hook_items h on h.id = held.value
where l.token = ?4
order by h.priority, h.due_at, h.id

-- name: HookSuspectList
-- Due suspects that may be run, in the order in which they are: large batches first, as
-- they are the least suspicious.
select r.id, coalesce(h.batch_limit, 1)
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue in (select value->>0 from jsonb_each(?1)) and r.suspect = 1 and r.due_at <= ?2 and max(coalesce(h.batch_limit, 1), 1) >= ?3{openable Hook r.id}
order by coalesce(h.batch_limit, 1) desc, r.priority, r.due_at, r.id
limit ?4

-- name: HookSuspectClaim
-- HookClaim for suspects that were chosen.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select id
  from perdure.ready
  where queue in (select value->>0 from jsonb_each(?9)) and suspect = 1 and due_at <= ?2 and id in (select value->>0 from jsonb_each(?8))
  limit ?3
)
having count(*) > 0
;
{rest}

-- name: HookSuspectDue
select 1
from perdure.ready
where queue in (select value->>0 from jsonb_each(?1)) and suspect = 1 and due_at <= ?2
limit 1

-- name: HookHeld
-- The hooks of the leases of a process that are in no other place, and thus held by them.
select l.token, l.alone, h.id, h.crashes, coalesce(h.batch_limit, 1), coalesce(h.key, h.id), h.name
from perdure.leases l, json_each(l.ids) held
join perdure.hook_items h on h.id = held.value
where l.worker = ?1
  and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer, json_each(newer.ids) n where newer.seq > l.seq and n.value = h.id)

-- name: HookTakeMany
select id
from perdure.hook_items
where id in (select value->>0 from jsonb_each(?1))

-- name: HookLock
select id
from perdure.hook_items
where id in (select value->>0 from jsonb_each(?1))

-- name: HookReturn
-- A claim whose process crashed: back to its lane. Suspects have a batch limit.
update perdure.hook_items
set crashes = o.value->>1, batch_limit = o.value->>3, error = ?1,
  last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where perdure.hook_items.id in (select value from json_each(l.ids))), last_attempt_at),
  next_attempt_at = case when o.value->>2 > 0 then ?2 + (o.value->>2) end, due_at = ?2 + (o.value->>2)
from jsonb_each(?3) o
where perdure.hook_items.id = o.value->>0
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, h.batch_limit is not null, h.priority, h.due_at, h.id
from jsonb_each(?3) o
join perdure.hook_items h on h.id = o.value->>0
returning queue

-- name: HookRelease
-- Back to its lane, at the due time of the row.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, batch_limit is not null, priority, due_at, id
from perdure.hook_items
where id in (select value->>0 from jsonb_each(?1))

-- name: HookPostpone
-- A claim that cannot be run here: for later, with the reason.
update perdure.hook_items
set error = ?1, due_at = ?2 + ?3, next_attempt_at = ?2 + ?3
where id = ?4

-- name: HookTried
-- Attempts that failed. The hooks are due again after a delay, unless that is null.
update perdure.hook_items
set attempt = attempt + 1, batch_limit = null, error = o.value->>1, last_attempt_at = ?2 - (o.value->>2),
  next_attempt_at = ?2 + (o.value->>3), due_at = coalesce(?2 + (o.value->>3), due_at)
from jsonb_each(?1) o
where perdure.hook_items.id = o.value->>0

-- name: HookEnd
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select value->>0, value->>1, value->>2, ?1, value->>3, ?3 - (value->>4), ?3
from jsonb_each(?2)

-- name: HookNextWake
-- Microseconds until something is due: a hook of these lanes, or an expired lease of the
-- queue.
select min(at) - ?1
from (
  select (
    select due_at
    from perdure.ready w
    where w.queue = lane.value->>0 and w.suspect = level.suspect and w.priority = level.priority and (not w.suspect or ?4 = 1){openable Hook w.id}
    order by w.due_at, w.id
    limit 1
  ) as at
  from jsonb_each(?3) lane, (
    select 0 as suspect, -1 as priority union all select 0, 0 union all select 0, 1 union all select 1, -1 union all select 1, 0 union all select 1, 1
  ) level
  union all
  select (
    select r.due_at
    from perdure.ready r
    join perdure.hook_items h on h.id = r.id
    where ?4 > 1 and r.queue in (select value->>0 from jsonb_each(?3)) and r.suspect = 1 and h.batch_limit >= ?4{openable Hook r.id}
    order by r.due_at
    limit 1
  )
  union all
  select (select expires_at from perdure.leases where queue = ?2 order by expires_at limit 1)
)
having min(at) is not null

-- name: HookFind
select h.id, h.namespace
from perdure.hook_items h
where h.key = ?1 or h.key is null and h.id = ?2

-- name: HookGet
select h.id, coalesce(h.key, h.id), h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'processing' else 'pending' end), h.priority, h.policy,
  h.max_attempts, h.attempt + coalesce(e.status = 'completed', 0), h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?

-- name: HookUnready
delete from perdure.ready
where (queue, suspect, priority, due_at, id) in (
  select h.queue, s.value, h.priority, h.due_at, h.id
  from perdure.hook_items h, json_each('[0, 1]') s
  where h.id = ?1
)

-- name: HookUnend
delete from perdure.hook_ends
where id = ?1

-- name: HookRevive
-- A hook that starts over: due now, with all attempts before it.
update perdure.hook_items
set attempt = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = ?1
where id = ?2

-- name: HookHasten
-- A hook that waits no longer.
update perdure.hook_items
set next_attempt_at = null, due_at = ?1
where id = ?2

-- name: HookCancel
-- The end of a hook that is in no other place any more.
insert into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, ?1
from perdure.hook_items h
where h.id = ?2

-- name: HookQuarantine
-- The end of a hook that has crashed too many processes.
update perdure.hook_items
set crashes = crashes + 1, error = ?1, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where perdure.hook_items.id in (select value from json_each(l.ids))), last_attempt_at)
where id = ?3
;
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select id, 'quarantined', ?1, created_at, last_attempt_at, ?2
from perdure.hook_items
where id = ?3

-- name: HookTaken
-- A row whose id a user chooses for another hook.
select 1
from perdure.hook_items
where key is null and id = ?

-- name: HookDelete
delete from perdure.attempts
where kind = 'hook' and id in (select value->>0 from jsonb_each(?1)) and actor_type = '' and actor_id = ''
;
delete from perdure.hook_ends
where id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.hook_items
where id in (select value->>0 from jsonb_each(?1))

-- name: HookPurge
select id
from perdure.hook_ends
where status in ('completed', 'cancelled') and finished_at <= ?1 - ?2
order by finished_at
limit ?3

-- name: HookPurgeDead
select id
from perdure.hook_ends
where status in ('failed', 'quarantined') and finished_at <= ?1 - ?2
order by finished_at
limit ?3
