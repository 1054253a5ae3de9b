-- Hooks: statements of all databases. Marks such as {now ?} are explained in template.go.
-- A new column must be added to Hook.Columns and Hook.Values, and to HookGet if it is
-- read.

-- Parts of statements.

-- name: Hook.Columns
-- The columns of a new hook, in the order of Hook.Values.
namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace

-- name: Hook.Values
{text ?6}, {text ?7}, {text ?8}, {json ?9}, {smallint ?10}, {json ?11}, {integer ?12}, {text ?13}, {text ?14}

-- name: Hook.ClaimColumns
{text h.id}, coalesce(h.key, {text h.id}), h.name, {text h.payload}, h.priority, {text h.policy}, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at

-- name: Hook.Public
coalesce(h.key, {text h.id})

-- name: Hook.Name
h.name

-- name: Hook.Ends
select id, 'ended' from perdure.hook_ends

-- name: HookGet
select {text h.id}, coalesce(h.key, {text h.id}), h.namespace, h.name, {text h.payload}, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), h.priority, {text h.policy},
  h.max_attempts, h.attempt + case when e.status = 'done' then 1 else 0 end, h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and {leased l h} order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and {leased l h} order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and {leased l h} order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect {suspect h} and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = {uuid ?}

-- name: HookUnend
delete from perdure.hook_ends
where id = {uuid ?}

-- name: HookRevive
-- Restarts a hook: it is due now, and no attempts are counted.
update perdure.hook_items
set attempt = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = {now ?}
where id = {uuid ?}

-- name: HookHasten
-- Makes a hook due now.
update perdure.hook_items
set next_attempt_at = null, due_at = {now ?}
where id = {uuid ?}
