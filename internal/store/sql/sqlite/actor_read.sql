-- Reading actors, and the machines that are data, on SQLite.

-- name: MachineInsert
-- A document that is already the newest is not stored again; of two processes
-- that store at once, one is told so by the key.
insert into perdure.machines (name, version, document, options, checksum, created_at)
select ?1, coalesce(max(version), 0) + 1, ?2, ?3, ?4, ?5
from perdure.machines
where name = ?1
having coalesce((select checksum from perdure.machines where name = ?1 order by version desc limit 1), '') <> ?4

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
  a.created_at, a.updated_at, s.sequence, s.snapshot, s.checksum
from perdure.actors a
left join perdure.snapshots s on s.actor_type = a.type and s.actor_id = a.id
where a.type = ? and a.id = ?

-- name: ActorVersion
select sequence
from perdure.actors
where type = ? and id = ?
