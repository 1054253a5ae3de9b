-- Server audit: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: AuditClaimOne
-- Locks one chain. Waits for the transaction that holds its lock.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
where chain = ?
{lock for update}

-- name: AuditClaimFree
-- Locks one chain, unless another transaction holds its lock.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
where chain = ?
{lock for update skip locked}

-- name: AuditStateInstance
select i.fsm, i.version, coalesce(f.status, 'live'), i.step, i.attempt, i.due_at, null
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.id = {uuid ?}

-- name: AuditStateDefinition
select fsm, version, null, null, null, updated_at, {text spec}
from perdure.remote_definitions
where fsm = ? and version = ?
{lock for update}

-- name: AuditStateToken
select name, null, case when revoked_at is null then 'valid' else 'revoked' end, role, null, expires_at, null
from perdure.tokens
where id = {uuid ?}
{lock for update}
