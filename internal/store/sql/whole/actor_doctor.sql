-- The invariants of actors.

-- name: ActorDoctorSnapshot
-- Every actor has a snapshot, of its last transition.
select type || '/' || id, case when snapshot is null then 'has no snapshot' else 'has the snapshot of another step' end
from perdure.actors
where snapshot is null or snapshot_sequence is null or snapshot_sequence <> sequence

-- name: ActorDoctorOrphan
-- Rows that belong to an actor belong to an existing actor.
select p.actor_type || '/' || p.actor_id, p.what || ' of no actor'
from (
  select actor_type, actor_id, 'checkpoint' as what from perdure.checkpoints
  union
  select actor_type, actor_id, 'key' from perdure.actor_keys
) p
where not exists (select 1 from perdure.actors a where a.type = p.actor_type and a.id = p.actor_id)

-- name: ActorDoctorAhead
-- No row of an actor has a sequence after its last transition.
select p.actor_type || '/' || p.actor_id, p.what || ' is of step ' || p.sequence || ', which it has not taken'
from (
  select actor_type, actor_id, sequence, 'checkpoint' as what from perdure.checkpoints
  union all
  select actor_type, actor_id, sequence, 'log' from perdure.actor_log
) p
join perdure.actors a on a.type = p.actor_type and a.id = p.actor_id
where p.sequence > a.sequence

-- name: ActorDoctorPostponed
-- No timer was postponed because a process could not run a transition of its actor.
select distinct actor_type || '/' || actor_id, 'has a delay that could not be fired when it was due'
from perdure.timers
where status = 'pending' and occurs_at is not null and crashes = 0

-- name: ActorDoctorQuarantined
-- No timer crashes its process.
select actor_type || '/' || actor_id || '/' || alarm_id, error
from perdure.timers
where status = 'quarantined' and error is not null

-- name: ActorDoctorGap
-- The log of an actor has every transition since its first one or a checkpoint.
select a.type || '/' || a.id, case
    when l.final < a.sequence then 'has no log of its last transition, ' || a.sequence
    when l.final - l.first + 1 <> l.n then 'has gaps in its log of ' || l.n || ' transitions'
    else 'has a log from transition ' || l.first || ', and no checkpoint before it'
  end
from (
  select actor_type, actor_id, min(sequence) as first, max(sequence) as final, count(*) as n
  from perdure.actor_log
  group by actor_type, actor_id
) l
join perdure.actors a on a.type = l.actor_type and a.id = l.actor_id
where l.final < a.sequence or l.final - l.first + 1 <> l.n
  or l.first > 1 and not exists (select 1 from perdure.checkpoints c where c.actor_type = a.type and c.actor_id = a.id and c.sequence >= l.first - 1)
limit 1000

-- name: ActorDoctorMachine
-- The version of a stored statechart that an actor has is stored.
select a.type || '/' || a.id, 'has version ' || a.machine || ' of its statechart, which is not stored'
from perdure.actors a
where a.status = 'active' and exists (select 1 from perdure.machines m where m.name = a.type)
  and not exists (select 1 from perdure.machines m where m.name = a.type and m.version = a.machine)
limit 1000

-- name: ActorTypes
-- The types of active actors that are not stored statecharts.
select a.type, count(*)
from perdure.actors a
where a.status = 'active' and not exists (select 1 from perdure.machines m where m.name = a.type)
group by a.type
order by a.type
limit 1000

-- name: ActorSums
-- The snapshots of the next actors with their checksums: their own, and that of the log.
select a.type, a.id, a.status, a.sequence, a.snapshot, a.checksum, (
    select l.checksum
    from perdure.actor_log l
    where l.actor_type = a.type and l.actor_id = a.id and l.sequence = a.sequence
  )
from perdure.actors a
where a.type >= ?1 and (a.type > ?1 or a.id > ?2)
order by a.type, a.id
limit ?3

-- name: CheckpointSums
-- The next checkpoints with their checksums: their own, and that of the log.
select c.actor_type, c.actor_id, c.sequence, c.snapshot, c.checksum, (
    select l.checksum
    from perdure.actor_log l
    where l.actor_type = c.actor_type and l.actor_id = c.actor_id and l.sequence = c.sequence
  )
from perdure.checkpoints c
where c.actor_type >= ?1 and (c.actor_type > ?1 or c.actor_id > ?2 or c.actor_id = ?2 and c.sequence > ?3)
order by c.actor_type, c.actor_id, c.sequence
limit ?4

-- name: MachineSums
-- All stored statecharts with their checksums.
select m.name, m.version, m.document, m.options, m.checksum
from perdure.machines m
order by m.name, m.version
limit 10000
