-- Durable hooks, on SQLite. now is always passed. A set is passed as JSON, with an
-- array for each row. A line with only a semicolon separates the statements of one
-- name.

-- Parts of the statements in family.sql.

-- name: Hook.Returned
next_attempt_at = case when o.value->>2 > 0 then ?2 + (o.value->>2) end,

-- name: Hook.Postponed
next_attempt_at = ?2 + ?3,

-- name: HookInsert
insert into perdure.hook_items (id, key, created_at, next_attempt_at, due_at, {piece Columns})
select ?4, ?5, t.at_now, case when t.at_due > t.at_now then t.at_due end, max(t.at_due, t.at_now), {piece Values}
from (select ?1 as at_now, coalesce(?2, ?1 + ?3) as at_due) t
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?4

-- name: HookInsertAbsent
-- Inserts no row if the id is taken.
insert into perdure.hook_items (id, key, created_at, next_attempt_at, due_at, {piece Columns})
select ?4, ?5, t.at_now, case when t.at_due > t.at_now then t.at_due end, max(t.at_due, t.at_now), {piece Values}
from (select ?1 as at_now, coalesce(?2, ?1 + ?3) as at_due) t
where not exists (select 1 from perdure.hook_items h where h.key is null and h.id = ?15)
on conflict (key) do nothing
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?4

-- name: HookTried
-- Records failed attempts. The hooks are due again after a delay, unless the delay is
-- null.
update perdure.hook_items
set attempt = attempt + 1, batch_limit = null, error = o.value->>1, last_attempt_at = ?2 - (o.value->>2),
  next_attempt_at = ?2 + (o.value->>3), due_at = coalesce(?2 + (o.value->>3), due_at)
from jsonb_each(?1) o
where perdure.hook_items.id = o.value->>0

-- name: HookEnd
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select value->>0, value->>1, value->>2, ?1, value->>3, ?3 - (value->>4), ?3
from jsonb_each(?2)

-- name: HookCancel
-- Finishes a hook that is no longer in any other place.
insert into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, ?1
from perdure.hook_items h
where h.id = ?2

-- name: HookQuarantine
-- Quarantines a hook after too many crashes.
update perdure.hook_items
set crashes = crashes + 1, error = ?1, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where perdure.hook_items.id in (select value from json_each(l.ids))), last_attempt_at)
where id = ?3
;
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select id, 'quarantined', ?1, created_at, last_attempt_at, ?2
from perdure.hook_items
where id = ?3

-- name: HookDelete
delete from perdure.attempts
where kind = 'hook' and id in (select value->>0 from jsonb_each(?1)) and actor_type = '' and actor_id = ''
;
delete from perdure.hook_ends
where id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.hook_items
where id in (select value->>0 from jsonb_each(?1))
