-- Due timers that a transaction locks together with their actors, and fires, on PostgreSQL.
-- The rows are locked once, and later statements address them by their locations (ctid).
-- A location does not change while the transaction has the row locked and has not changed
-- it.

-- name: TimerHold
-- Timers of the same actor are adjacent, so only the last actor can have more due timers
-- than were read. A process that works on a backlog passes the due time of the last timer
-- that it has locked: earlier timers are locked by its other transactions, or are deleted
-- rows. The table of timers that other processes fire is built only if they fire some: the
-- planner assumes that it is large.
select d.*
from unnest($2::text[]) as known (type)
cross join lateral (
  select al.actor_type, al.actor_id, al.alarm_id, al.payload::text, coalesce(al.occurs_at, al.due_at), al.crashes, al.due_at, al.ctid::text, a.ctid::text
  from perdure.timers al
  join perdure.actors a on a.type = al.actor_type and a.id = al.actor_id
  where al.status = 'pending' and al.batch_limit is null and al.actor_type = known.type
    and al.due_at between coalesce($4::timestamptz, '-infinity') and coalesce($1::timestamptz, now()){openable Actor al}
    and (not exists (select 1 from perdure.firing f where f.worker <> $5) or (al.actor_type, al.actor_id) not in (
      select t.value ->> 0, t.value ->> 1
      from perdure.firing f
      cross join lateral json_array_elements(f.timers) t
      where f.worker <> $5
    ))
  order by al.due_at, al.actor_id
  limit $3
  for no key update of a skip locked
  for update of al skip locked
) d

-- name: ActorHeld
-- Omits the snapshots that the caller has. The last column is true if any timer was
-- postponed: such a timer may be earlier than the timers that were locked.
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, coalesce($1::timestamptz, now()), a.reason,
  case when a.snapshot_sequence <> held.has then a.snapshot_sequence end, case when a.snapshot_sequence <> held.has then a.snapshot end, a.checksum,
  exists (select 1 from perdure.timers where occurs_at is not null)
from unnest($2::tid[], $3::bigint[]) as held (location, has)
join perdure.actors a on a.ctid = held.location

-- name: ActorStepHeld
-- ActorStep for locked rows.
update perdure.actors a
set status = o.status, machine = o.machine, sequence = o.sequence, value = coalesce(o.value::json, a.value),
  states = case when o.value is null then a.states else o.states end, reason = o.reason, updated_at = o.at,
  snapshot = coalesce(o.snapshot::json, a.snapshot), checksum = coalesce(o.checksum, a.checksum),
  snapshot_sequence = case when o.snapshot is null then a.snapshot_sequence else o.sequence end
from unnest(?::tid[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::text[], ?::text[])
  as o (location, status, machine, sequence, value, states, reason, at, snapshot, checksum)
where a.ctid = o.location

-- name: TimerDeleteHeld
delete from perdure.timers
where ctid = any($1::tid[])
