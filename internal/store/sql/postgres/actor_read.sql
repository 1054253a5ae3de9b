-- Reads of actors and stored statecharts, on PostgreSQL.

-- name: MachineInsert
-- A document that is already the newest is not stored again. If two processes store
-- it concurrently, the unique key rejects one of them.
insert into perdure.machines (name, version, document, options, checksum, created_at)
select $1, coalesce(max(version), 0) + 1, $2::json, $3::json, $4, coalesce($5::timestamptz, now())
from perdure.machines
where name = $1
having coalesce((select checksum from perdure.machines where name = $1 order by version desc limit 1), '') <> $4

-- name: TimerNext
-- Returns the microseconds until a timer of an actor of one of the types is due.
select (extract(epoch from least(greatest(min(next.due_at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from unnest($2::text[]) as known (type)
cross join lateral (
  select due_at
  from perdure.timers w
  where status = 'pending' and actor_type = known.type{openable Actor w}
  order by due_at
  limit 1
) next
having min(next.due_at) is not null

-- name: TimerList
-- Returns all timers of some actors, in the order in which they will fire.
select al.actor_type, al.actor_id, al.alarm_id, al.type, coalesce(al.occurs_at, al.due_at), al.sequence, al.payload, al.path, al.generation, al.created_at, al.crashes, al.error
from unnest(?::text[], ?::text[]) as wanted (type, id)
join perdure.timers al on al.actor_type = wanted.type and al.actor_id = wanted.id
order by coalesce(al.occurs_at, al.due_at), al.sequence, al.actor_type, al.actor_id

-- name: ActorLogPrune
-- Keeps the newest checkpoint that is old enough, and the log after it.
with oldest as (
  select o.type, o.id, (
      select max(c.sequence)
      from perdure.checkpoints c
      where c.actor_type = o.type and c.actor_id = o.id and c.sequence <= o.before
    ) as sequence
  from unnest(?::text[], ?::text[], ?::bigint[]) as o (type, id, before)
), gone as (
  delete from perdure.checkpoints c
  using oldest
  where c.actor_type = oldest.type and c.actor_id = oldest.id and c.sequence < oldest.sequence
)
delete from perdure.actor_log l
using oldest
where l.actor_type = oldest.type and l.actor_id = oldest.id and l.sequence <= oldest.sequence

-- name: ActorKeyPurge
with old as (
  select actor_type, actor_id, key
  from perdure.actor_keys
  where created_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
  order by created_at
  limit $3
  for update skip locked
)
delete from perdure.actor_keys k
using old
where k.actor_type = old.actor_type and k.actor_id = old.actor_id and k.key = old.key

-- name: ActorDelete
-- Deletes everything that is stored of an actor, except its effects.
with log as (
  delete from perdure.actor_log where actor_type = $1 and actor_id = $2
), keys as (
  delete from perdure.actor_keys where actor_type = $1 and actor_id = $2
), points as (
  delete from perdure.checkpoints where actor_type = $1 and actor_id = $2
), timers as (
  delete from perdure.timers where actor_type = $1 and actor_id = $2
), tokens as (
  delete from perdure.tokens where kind = 'actor' and actor_type = $1 and actor_id = $2
)
delete from perdure.actors where type = $1 and id = $2
