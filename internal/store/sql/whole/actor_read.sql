-- Reads of actors and stored statecharts.

-- name: MachineNewest
select name, version, document, options, created_at
from perdure.machines
where name = ?
order by version desc
limit 1

-- name: MachineGet
select name, version, document, options, created_at
from perdure.machines
where name = ? and version = ?

-- name: MachineList
select m.name, m.version, m.document, m.options, m.created_at
from perdure.machines m
where not exists (select 1 from perdure.machines later where later.name = m.name and later.version > m.version)
order by m.name

-- name: ActorGet
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.value, a.states, a.origin, a.caller_kind, a.caller_id, a.input, a.reason,
  a.created_at, a.updated_at, a.snapshot_sequence, a.snapshot, a.checksum
from perdure.actors a
where a.type = ? and a.id = ?

-- name: ActorSnapshot
select snapshot_sequence, snapshot, checksum
from perdure.actors
where type = ? and id = ? and snapshot is not null and snapshot_sequence is not null

-- name: ActorVersion
select incarnation, sequence
from perdure.actors
where type = ? and id = ?

-- name: MachineNames
select distinct name
from perdure.machines

-- name: TimerAhead
-- Returns the timers of all actors of a type that are due until a time.
select actor_type, actor_id, alarm_id, type, due_at, sequence, payload, path, generation, created_at, crashes, error
from perdure.timers
where status = 'pending' and actor_type = ? and due_at <= ?
order by due_at, actor_id, sequence
limit ?

-- name: ActorLogList
select l.actor_type, l.actor_id, l.sequence, l.kind, l.event, l.caller_kind, l.caller_id, l.path, l.generation, l.key, l.said, l.value, l.checksum, l.at, l.recorded_at
from perdure.actor_log l
where actor_type = ? and actor_id = ? and sequence > ? and sequence <= ?
order by sequence
limit ?

-- name: CheckpointGet
-- Returns the last complete state at or before a transition.
select actor_type, actor_id, sequence, machine, snapshot, timers, checksum
from perdure.checkpoints
where actor_type = ? and actor_id = ? and sequence <= ?
order by sequence desc
limit 1
