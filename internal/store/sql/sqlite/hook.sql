-- Durable hooks, on SQLite. now is always given. Sets are passed as JSON, an array for
-- each row; a lone ; stands between the statements of one name.

-- Pieces of the statements in family.sql.

-- name: Hook.ClaimColumns
h.id, coalesce(h.key, h.id), h.name, h.payload, h.priority, h.policy, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at

-- name: Hook.Public
coalesce(h.key, h.id)

-- name: Hook.Name
h.name

-- name: Hook.Ends
select id, 'ended' from perdure.hook_ends

-- name: Hook.Live
not exists (select 1 from perdure.hook_ends e where e.id = h.id)

-- name: Hook.Returned
next_attempt_at = case when o.value->>2 > 0 then ?2 + (o.value->>2) end,

-- name: Hook.Postponed
next_attempt_at = ?2 + ?3,

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

-- name: HookFind
select h.id, h.namespace
from perdure.hook_items h
where h.key = ?1 or h.key is null and h.id = ?2

-- name: HookGet
select h.id, coalesce(h.key, h.id), h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), h.priority, h.policy,
  h.max_attempts, h.attempt + coalesce(e.status = 'done', 0), h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?

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
where status in ('done', 'cancelled') and finished_at <= ?1 - ?2
order by finished_at
limit ?3

-- name: HookPurgeDead
select id
from perdure.hook_ends
where status in ('failed', 'quarantined') and finished_at <= ?1 - ?2
order by finished_at
limit ?3
