-- Durable hooks, on PostgreSQL. Tests pass the time as now; otherwise now is null and the
-- server's clock decides. Sets are passed as arrays.

-- Parts of the statements in family.sql.

-- name: Hook.Returned
next_attempt_at = case when o.delay > 0 then t.now + o.delay * interval '1 microsecond' end,

-- name: Hook.Postponed
next_attempt_at = t.later,

-- name: HookInsert
with new as (
  insert into perdure.hook_items (id, key, created_at, next_attempt_at, due_at, {piece Columns})
  select ?4::uuid, ?5::text, t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now), {piece Values}
  from (select {now ?1} as at_now, coalesce(?2::timestamptz, {now ?1} + {us ?3::bigint}) as at_due) t
  returning queue, priority, due_at, id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from new

-- name: HookInsertMany
-- Inserts hooks that differ only in id and payload.
with new as (
  insert into perdure.hook_items (id, created_at, next_attempt_at, due_at, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace)
  select o.id, t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now), ?6::text, ?7::text, ?8::text, o.payload::json, ?9::smallint,
    ?10::json, ?11::integer, ?12::text, ?13::text
  from unnest(?4::uuid[], ?5::text[]) as o (id, payload),
    (select {now ?1} as at_now, coalesce(?2::timestamptz, {now ?1} + {us ?3::bigint}) as at_due) t
  returning queue, priority, due_at, id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from new

-- name: HookInsertAbsent
-- Inserts no row if the id is taken. A concurrent insert of the same id waits.
with new as (
  insert into perdure.hook_items (id, key, created_at, next_attempt_at, due_at, {piece Columns})
  select ?4::uuid, ?5::text, t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now), {piece Values}
  from (select {now ?1} as at_now, coalesce(?2::timestamptz, {now ?1} + {us ?3::bigint}) as at_due) t
  where not exists (select 1 from perdure.hook_items h where h.key is null and h.id = ?15::uuid)
  on conflict (key) do nothing
  returning queue, priority, due_at, id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from new

-- name: HookTried
-- Records failed attempts. The hooks are due again after a delay, unless the delay is
-- null.
update perdure.hook_items h
set attempt = h.attempt + 1, batch_limit = null, error = o.error, last_attempt_at = t.now - o.took * interval '1 microsecond',
  next_attempt_at = t.now + o.delay * interval '1 microsecond', due_at = coalesce(t.now + o.delay * interval '1 microsecond', h.due_at)
from unnest(?::uuid[], ?::text[], ?::bigint[], ?::bigint[]) as o (id, error, took, delay), (select coalesce(?::timestamptz, now()) as now) t
where h.id = o.id

-- name: HookEnd
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select o.id, o.status, o.error, ?::text, o.created_at, t.now - o.took * interval '1 microsecond', t.now
from unnest(?::uuid[], ?::text[], ?::text[], ?::timestamptz[], ?::bigint[]) as o (id, status, error, created_at, took), (select coalesce(?::timestamptz, now()) as now) t

-- name: HookCancel
-- Finishes a hook that is no longer in any other place. A process that completes the hook
-- does not lock it: its end may exist already, or be committed while this statement waits
-- for it.
insert into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, coalesce(?::timestamptz, now())
from perdure.hook_items h
where h.id = ?::uuid
on conflict do nothing

-- name: HookQuarantine
-- Quarantines a hook after too many crashes.
with lost as (
  update perdure.hook_items
  set crashes = crashes + 1, error = $1::text, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where hook_items.id = any(l.ids)), last_attempt_at)
  where id = $3::uuid
  returning id, created_at, last_attempt_at
)
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select id, 'quarantined', $1::text, created_at, last_attempt_at, coalesce($2::timestamptz, now())
from lost

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
