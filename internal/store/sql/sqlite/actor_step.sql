-- The transitions of actors, many in one statement, on SQLite. now is always
-- passed. Only one transaction writes at a time, so no locks are needed. A set is
-- passed as JSON, with an array for each row.

-- name: ActorEnter
insert into perdure.actors (type, id, incarnation, status, machine, sequence, states, origin, caller_kind, caller_id, input, created_at, updated_at)
select value->>0, value->>1, value->>2, 'active', value->>3, 0, '', value->>4, value->>5, value->>6, value->>7, ?2, ?2
from jsonb_each(?1)
where true
on conflict (type, id) do nothing

-- name: ActorLeave
delete from perdure.actors
where sequence = 0 and (type, id) in (select value->>0, value->>1 from jsonb_each(?1))

-- name: ActorLock
-- Omits the snapshots that the caller has.
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, ?1, a.reason,
  case when a.snapshot_sequence <> wanted.value->>2 then a.snapshot_sequence end, case when a.snapshot_sequence <> wanted.value->>2 then a.snapshot end, a.checksum
from jsonb_each(?2) wanted
cross join perdure.actors a on a.type = wanted.value->>0 and a.id = wanted.value->>1
order by a.type, a.id

-- name: TimerDue
-- Written so that the index of all pending timers, which is large, cannot be used.
select actor_type, actor_id, alarm_id, payload, due_at, crashes, batch_limit is not null
from (
  select al.actor_type, al.actor_id, al.alarm_id, al.payload, coalesce(al.occurs_at, al.due_at) as due_at, al.crashes, al.batch_limit,
    row_number() over (partition by al.actor_type, al.actor_id order by coalesce(al.occurs_at, al.due_at), al.sequence) as place
  from jsonb_each(?1) wanted
  cross join perdure.timers al on al.actor_type = wanted.value->>0 and al.actor_id = wanted.value->>1
  where al.status <> 'quarantined' and coalesce(al.occurs_at, al.due_at) <= ?2
)
where place <= ?3
order by actor_type, actor_id, place

-- name: ActorKeyList
select k.actor_type, k.actor_id, k.key, k.sequence, k.digest
from jsonb_each(?1) wanted
cross join perdure.actor_keys k on k.actor_type = wanted.value->>0 and k.actor_id = wanted.value->>1 and k.key = wanted.value->>2

-- name: ActorStep
-- An actor whose transition failed keeps its value and its snapshot.
update perdure.actors
set status = o.value->>2, machine = o.value->>3, sequence = o.value->>4, value = coalesce(o.value->>5, perdure.actors.value),
  states = case when o.value->>5 is null then states else o.value->>6 end, reason = o.value->>7, updated_at = o.value->>8,
  snapshot = coalesce(o.value->>9, snapshot), checksum = coalesce(o.value->>10, checksum),
  snapshot_sequence = case when o.value->>9 is null then snapshot_sequence else o.value->>4 end
from jsonb_each(?1) o
where perdure.actors.type = o.value->>0 and perdure.actors.id = o.value->>1

-- name: ActorLogInsert
insert into perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9, value->>10, value->>11, value->>12, value->>13, value->>14
from jsonb_each(?1)

-- name: ActorKeyInsert
insert into perdure.actor_keys (actor_type, actor_id, key, sequence, created_at, digest)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5
from jsonb_each(?1)

-- name: TimerPut
insert into perdure.timers (actor_type, actor_id, alarm_id, type, due_at, sequence, payload, path, generation, created_at)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9
from jsonb_each(?1)
where true
on conflict (actor_type, actor_id, alarm_id) do update
set type = excluded.type, due_at = excluded.due_at, sequence = excluded.sequence, payload = excluded.payload,
  path = excluded.path, generation = excluded.generation, created_at = excluded.created_at, status = 'pending', occurs_at = null,
  crashes = 0, batch_limit = null, error = null

-- name: TimerDelete
delete from perdure.timers
where (actor_type, actor_id, alarm_id) in (select value->>0, value->>1, value->>2 from jsonb_each(?1))

-- name: TimerDeleteAll
delete from perdure.timers
where (actor_type, actor_id) in (select value->>0, value->>1 from jsonb_each(?1))
  and (actor_type, actor_id, path, generation) in (select value->>0, value->>1, value->>2, value->>3 from jsonb_each(?1))

-- name: TimerPark
update perdure.timers
set status = ?1
where error is null and (actor_type, actor_id) in (select value->>0, value->>1 from jsonb_each(?2))

-- name: TimerPostpone
-- Postpones the due timers of actors by the time that they have been due, within
-- bounds. The original time of a timer does not change.
update perdure.timers
set occurs_at = coalesce(occurs_at, due_at), due_at = ?1 + min(max(?1 - coalesce(occurs_at, due_at), ?2), ?3)
where status = 'pending' and (actor_type, actor_id) in (select value->>0, value->>1 from jsonb_each(?4)) and due_at <= ?1

-- name: CheckpointInsert
insert into perdure.checkpoints (actor_type, actor_id, sequence, machine, snapshot, timers, checksum)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6
from jsonb_each(?1)
where true
on conflict (actor_type, actor_id, sequence) do nothing

-- name: ActorImport
insert into perdure.imports (actor_type, actor_id, imported_at)
values (?, ?, ?)
on conflict (actor_type, actor_id) do nothing
