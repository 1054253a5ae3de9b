-- The audit log, on PostgreSQL.

-- name: AuditClaim
-- Locks any chain that no other transaction has locked.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
order by chain
limit 1
for update skip locked

-- name: AuditInsert
insert into perdure.audit (id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, before, after, hash)
select *
from unnest(?::text[], ?::integer[], ?::bigint[], ?::timestamptz[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
  ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])

-- name: AuditStateTask
select task_type, null, status, null, attempts, scheduled_at, null
from queues.task
where task_id = ?
