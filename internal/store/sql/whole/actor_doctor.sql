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
