-- The audit log, on PostgreSQL.

-- name: AuditClaim
-- Any chain that no other transaction holds.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
order by chain
limit 1
for update skip locked

-- name: AuditClaimOne
-- One chain. Waits for the transaction that holds it.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
where chain = ?
for update

-- name: AuditClaimFree
-- One chain, unless another transaction holds it.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
where chain = ?
for update skip locked

-- name: AuditInsert
insert into perdure.audit (id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, before, after, hash)
select *
from unnest(?::text[], ?::integer[], ?::bigint[], ?::timestamptz[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
  ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])

-- name: AuditStateInstance
select i.fsm, i.version, coalesce(f.status, 'live'), i.step, i.attempt, i.due_at, null
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.id = ?::uuid

-- name: AuditStateSchedule
select fsm, version, case when paused then 'paused' else 'active' end, null, null, next_at, spec::text
from perdure.schedules
where name = ?
for update

-- name: AuditStateDefinition
select fsm, version, null, null, null, updated_at, spec::text
from perdure.remote_definitions
where fsm = ? and version = ?
for update

-- name: AuditStateToken
select name, null, case when revoked_at is null then 'valid' else 'revoked' end, role, null, expires_at, null
from perdure.tokens
where id = ?::uuid
for update

-- name: AuditStateTask
select task_type, null, status, null, attempts, scheduled_at, null
from queues.task
where task_id = ?
