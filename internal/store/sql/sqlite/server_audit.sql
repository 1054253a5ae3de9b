-- The audit log, on SQLite. There is one writer at a time, so one chain suffices.

-- name: AuditClaim
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
where chain = 1

-- name: AuditInsert
insert into perdure.audit (id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, before, after, hash)
select e.value ->> 0, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, e.value ->> 6, e.value ->> 7, e.value ->> 8, e.value ->> 9,
  e.value ->> 10, e.value ->> 11, e.value ->> 12, e.value ->> 13, e.value ->> 14, e.value ->> 15, e.value ->> 16, e.value ->> 17
from json_each(?) e

-- name: AuditStateTask
select task_type, null, status, null, attempts, scheduled_at, null
from queues_task
where task_id = ?
