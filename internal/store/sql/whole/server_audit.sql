-- The audit log.

-- name: AuditAdvance
update perdure.audit_chains
set seq = ?, hash = ?
where chain = ? and seq = ?

-- name: AuditChains
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
order by chain

-- name: AuditChain
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
where chain = ?

-- name: AuditStray
select count(*)
from perdure.audit
where chain not between 1 and ?

-- name: AuditOfChain
-- Returns the entries of a chain after a given entry.
select id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, a.before, a.after, hash
from perdure.audit a
where chain = ? and seq > ?
order by seq
limit ?

-- name: AuditGet
select id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, a.before, a.after, hash
from perdure.audit a
where id = ?

-- name: AuditList
-- The program adds conditions and the order.
select id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, a.before, a.after, hash
from perdure.audit a

-- name: AuditOldest
-- Returns the newest entry of a chain before a time, up to a seq that limits the
-- number of entries.
select seq, hash
from perdure.audit
where chain = ? and seq <= ? and at < ?
order by seq desc
limit 1

-- name: AuditRebase
update perdure.audit_chains
set base_seq = ?, base_hash = ?
where chain = ? and base_seq = ?

-- name: AuditRemove
delete from perdure.audit
where chain = ? and seq <= ?

-- The description of an object in an entry, before and after an action: its name,
-- version, status, step, attempts and time, and other fields as JSON. It has no
-- payloads.

-- name: AuditStateAlarm
select type, generation, status, null, attempts, due_at, null
from perdure.alarms
where actor_type = ? and actor_id = ? and kind = ? and alarm_id = ?

-- name: AuditStateActor
select type, machine, status, null, sequence, updated_at, null
from perdure.actors
where type = ? and id = ?

-- name: AuditStateMachine
select name, version, null, checksum, null, created_at, null
from perdure.machines
where name = ?
order by version desc
limit 1

-- name: AuditStateNode
select host, null, case when draining then 'draining' else 'up' end, null, null, started_at, null
from perdure.nodes
where id = ?

-- name: AuditStateSchedule
select fsm, version, case when paused then 'paused' else 'active' end, null, null, next_at, {text spec}
from perdure.schedules
where name = ?
{lock for update}
