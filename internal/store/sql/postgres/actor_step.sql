-- The transitions of actors, many in one statement, on PostgreSQL. The rows of
-- actors are locked first, in order; every later statement sees the changes that
-- were committed before.

-- name: ActorEnter
-- Inserts the rows of new actors, which locks them. An existing actor is left
-- unchanged; its sequence shows that it existed.
insert into perdure.actors (type, id, incarnation, status, machine, sequence, states, origin, caller_kind, caller_id, input, created_at, updated_at)
select n.type, n.id, n.incarnation, 'active', n.machine, 0, '', n.origin, n.caller_kind, n.caller_id, n.input::json, t.now, t.now
from unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[])
  as n (type, id, incarnation, machine, origin, caller_kind, caller_id, input),
  (select coalesce(?::timestamptz, now()) as now) t
order by n.type, n.id
on conflict (type, id) do nothing

-- name: ActorLeave
-- Removes the rows of actors that could not be started.
delete from perdure.actors
where sequence = 0 and (type, id) in (select type, id from unnest(?::text[], ?::text[]) as n (type, id))

-- name: ActorLock
-- Omits the snapshots that the caller has.
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, coalesce(?::timestamptz, now()), a.reason,
  case when a.snapshot_sequence <> wanted.has then a.snapshot_sequence end, case when a.snapshot_sequence <> wanted.has then a.snapshot end, a.checksum
from unnest(?::text[], ?::text[], ?::bigint[]) as wanted (type, id, has)
join perdure.actors a on a.type = wanted.type and a.id = wanted.id
order by a.type, a.id
for no key update of a

-- name: TimerDue
-- Written as one lookup in the primary key for each actor, independent of the
-- planner's estimates. The index of all pending timers is large, and the planner
-- assumes that it is small until the next analyze.
select due.actor_type, due.actor_id, due.alarm_id, due.payload, coalesce(due.occurs_at, due.due_at), due.crashes, due.batch_limit is not null
from unnest(?::text[], ?::text[]) as wanted (type, id)
cross join lateral (
  select *
  from perdure.timers al
  where al.actor_type = wanted.type and al.actor_id = wanted.id and al.status <> 'quarantined'
    and coalesce(al.occurs_at, al.due_at) <= coalesce(?::timestamptz, now())
  order by coalesce(al.occurs_at, al.due_at), al.sequence
  limit ?
) due

-- name: ActorKeyList
select k.actor_type, k.actor_id, k.key, k.sequence, k.digest
from unnest(?::text[], ?::text[], ?::text[]) as wanted (type, id, key)
join perdure.actor_keys k on k.actor_type = wanted.type and k.actor_id = wanted.id and k.key = wanted.key

-- name: ActorStep
-- An actor whose transition failed keeps its value and its snapshot.
update perdure.actors a
set status = o.status, machine = o.machine, sequence = o.sequence, value = coalesce(o.value::json, a.value),
  states = case when o.value is null then a.states else o.states end, reason = o.reason, updated_at = o.at,
  snapshot = coalesce(o.snapshot::json, a.snapshot), checksum = coalesce(o.checksum, a.checksum),
  snapshot_sequence = case when o.snapshot is null then a.snapshot_sequence else o.sequence end
from unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::text[], ?::text[])
  as o (type, id, status, machine, sequence, value, states, reason, at, snapshot, checksum)
where a.type = o.type and a.id = o.id

-- name: ActorLogInsert
insert into perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at)
select o.type, o.id, o.sequence, o.kind, o.event::json, o.caller_kind, o.caller_id, o.path, o.generation, o.key, o.said::json, o.value::json, o.checksum, o.at, o.recorded_at
from unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::timestamptz[])
  as o (type, id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at)

-- name: ActorKeyInsert
insert into perdure.actor_keys (actor_type, actor_id, key, sequence, created_at, digest)
select o.type, o.id, o.key, o.sequence, o.at, o.digest
from unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::timestamptz[], ?::text[]) as o (type, id, key, sequence, at, digest)

-- name: TimerPut
insert into perdure.timers (actor_type, actor_id, alarm_id, type, due_at, sequence, payload, path, generation, created_at)
select o.type, o.id, o.alarm_id, o.event, o.due, o.sequence, o.payload::json, o.path, o.generation, o.at
from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::timestamptz[])
  as o (type, id, alarm_id, event, due, sequence, payload, path, generation, at)
on conflict (actor_type, actor_id, alarm_id) do update
set type = excluded.type, due_at = excluded.due_at, sequence = excluded.sequence, payload = excluded.payload,
  path = excluded.path, generation = excluded.generation, created_at = excluded.created_at, status = 'pending', occurs_at = null,
  crashes = 0, batch_limit = null, error = null

-- name: TimerDelete
delete from perdure.timers al
using unnest(?::text[], ?::text[], ?::text[]) as o (type, id, alarm_id)
where al.actor_type = o.type and al.actor_id = o.id and al.alarm_id = o.alarm_id

-- name: TimerDeleteAll
-- Deletes the timers of one actor in a tree.
delete from perdure.timers al
using unnest(?::text[], ?::text[], ?::text[], ?::bigint[]) as o (type, id, path, generation)
where al.actor_type = o.type and al.actor_id = o.id and al.path = o.path and al.generation = o.generation

-- name: TimerPark
-- Suspends the timers of actors, or resumes them. Timers that are quarantined
-- themselves have an error and are left unchanged.
update perdure.timers al
set status = ?
from unnest(?::text[], ?::text[]) as o (type, id)
where al.actor_type = o.type and al.actor_id = o.id and al.error is null

-- name: TimerPostpone
-- Postpones the due timers of actors by the time that they have been due, within
-- bounds. The original time of a timer does not change.
update perdure.timers al
set occurs_at = coalesce(al.occurs_at, al.due_at),
  due_at = t.now + least(greatest(t.now - coalesce(al.occurs_at, al.due_at), $2::bigint * interval '1 microsecond'), $3::bigint * interval '1 microsecond')
from unnest($4::text[], $5::text[]) as o (type, id), (select coalesce($1::timestamptz, now()) as now) t
where al.actor_type = o.type and al.actor_id = o.id and al.status = 'pending' and al.due_at <= t.now

-- name: CheckpointInsert
insert into perdure.checkpoints (actor_type, actor_id, sequence, machine, snapshot, timers, checksum)
select o.type, o.id, o.sequence, o.machine, o.snapshot::json, o.timers::json, o.checksum
from unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[])
  as o (type, id, sequence, machine, snapshot, timers, checksum)
on conflict (actor_type, actor_id, sequence) do nothing

-- name: ActorImport
insert into perdure.imports (actor_type, actor_id, imported_at)
values (?, ?, coalesce(?::timestamptz, now()))
on conflict (actor_type, actor_id) do nothing
