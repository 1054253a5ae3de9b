-- Durable hooks, on PostgreSQL. now is given by tests; otherwise it is null and the
-- server's clock decides. Sets are passed as arrays.

-- Pieces of the statements in family.sql.

-- name: Hook.ClaimColumns
h.id::text, coalesce(h.key, h.id::text), h.name, h.payload::text, h.priority, h.policy::text, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at

-- name: Hook.Public
coalesce(h.key, h.id::text)

-- name: Hook.Name
h.name

-- name: Hook.Ends
select id, 'ended' from perdure.hook_ends

-- name: Hook.Live
not exists (select 1 from perdure.hook_ends e where e.id = h.id)

-- name: Hook.Returned
next_attempt_at = case when o.delay > 0 then t.now + o.delay * interval '1 microsecond' end,

-- name: Hook.Postponed
next_attempt_at = t.later,

-- name: HookInsert
with new as (
  insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
  select ?::uuid, ?::text, ?::text, ?::text, ?::text, ?::json, ?::smallint, ?::json, ?::integer, ?::text, ?::text,
    t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now)
  from (select coalesce(?::timestamptz, now()) as at_now, coalesce(?::timestamptz, coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond') as at_due) t
  returning queue, priority, due_at, id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from new

-- name: HookTried
-- Attempts that failed. The hooks are due again after a delay, unless that is null.
update perdure.hook_items h
set attempt = h.attempt + 1, batch_limit = null, error = o.error, last_attempt_at = t.now - o.took * interval '1 microsecond',
  next_attempt_at = t.now + o.delay * interval '1 microsecond', due_at = coalesce(t.now + o.delay * interval '1 microsecond', h.due_at)
from unnest(?::uuid[], ?::text[], ?::bigint[], ?::bigint[]) as o (id, error, took, delay), (select coalesce(?::timestamptz, now()) as now) t
where h.id = o.id

-- name: HookEnd
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select o.id, o.status, o.error, ?::text, o.created_at, t.now - o.took * interval '1 microsecond', t.now
from unnest(?::uuid[], ?::text[], ?::text[], ?::timestamptz[], ?::bigint[]) as o (id, status, error, created_at, took), (select coalesce(?::timestamptz, now()) as now) t

-- name: HookFind
-- Locks a hook, by the id that its user knows.
select h.id::text, h.namespace
from perdure.hook_items h
where h.key = ? or h.key is null and h.id = ?::uuid
for no key update of h

-- name: HookGet
select h.id::text, coalesce(h.key, h.id::text), h.namespace, h.name, h.payload::text, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), h.priority, h.policy::text,
  h.max_attempts, h.attempt + case when e.status = 'done' then 1 else 0 end, h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?::uuid

-- name: HookUnend
delete from perdure.hook_ends
where id = ?::uuid

-- name: HookRevive
-- A hook that starts over: due now, with all attempts before it.
update perdure.hook_items
set attempt = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = coalesce(?::timestamptz, now())
where id = ?::uuid

-- name: HookHasten
-- A hook that waits no longer.
update perdure.hook_items
set next_attempt_at = null, due_at = coalesce(?::timestamptz, now())
where id = ?::uuid

-- name: HookCancel
-- The end of a hook that is in no other place any more. A process that completes the hook
-- does not lock it: its end may be there, or be committed while this waits for it.
insert into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, coalesce(?::timestamptz, now())
from perdure.hook_items h
where h.id = ?::uuid
on conflict do nothing

-- name: HookQuarantine
-- The end of a hook that has crashed too many processes.
with lost as (
  update perdure.hook_items
  set crashes = crashes + 1, error = $1::text, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where hook_items.id = any(l.ids)), last_attempt_at)
  where id = $3::uuid
  returning id, created_at, last_attempt_at
)
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select id, 'quarantined', $1::text, created_at, last_attempt_at, coalesce($2::timestamptz, now())
from lost

-- name: HookTaken
-- A row whose id a user chooses for another hook.
select 1
from perdure.hook_items
where key is null and id = ?::uuid

-- name: HookDelete
with attempts as (
  delete from perdure.attempts
  where kind = 'hook' and id = any($1::text[])
), ends as (
  delete from perdure.hook_ends
  where id = any($1::uuid[])
)
delete from perdure.hook_items
where id = any($1::uuid[])

-- name: HookPurge
select id::text
from perdure.hook_ends
where status in ('done', 'cancelled') and finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
order by finished_at
limit $3
for update skip locked

-- name: HookPurgeDead
select id::text
from perdure.hook_ends
where status in ('failed', 'quarantined') and finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
order by finished_at
limit $3
for update skip locked
