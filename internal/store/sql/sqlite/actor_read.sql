-- Reads of actors and stored statecharts, on SQLite.

-- name: MachineInsert
-- A document that is already the newest is not stored again. If two processes store
-- it concurrently, the unique key rejects one of them.
insert into perdure.machines (name, version, document, options, checksum, created_at)
select ?1, coalesce(max(version), 0) + 1, ?2, ?3, ?4, ?5
from perdure.machines
where name = ?1
having coalesce((select checksum from perdure.machines where name = ?1 order by version desc limit 1), '') <> ?4

-- name: TimerNext
-- Returns the microseconds until a timer of an actor of one of the types is due.
select min(max(min((
    select min(due_at)
    from perdure.timers w
    where status = 'pending' and actor_type = known.value->>0{openable Actor w}
  )), -62135510400000000), 253402214400000000) - ?1
from jsonb_each(?2) known

-- name: TimerList
-- Returns all timers of some actors, in the order in which they will fire.
select al.actor_type, al.actor_id, al.alarm_id, al.type, coalesce(al.occurs_at, al.due_at), al.sequence, al.payload, al.path, al.generation, al.created_at, al.crashes, al.error
from jsonb_each(?1) wanted
cross join perdure.timers al on al.actor_type = wanted.value->>0 and al.actor_id = wanted.value->>1
order by coalesce(al.occurs_at, al.due_at), al.sequence, al.actor_type, al.actor_id

-- name: ActorLogPrune
-- Keeps the newest checkpoint that is old enough, and the log after it.
delete from perdure.actor_log
where (actor_type, actor_id) in (select value->>0, value->>1 from jsonb_each(?1))
  and sequence <= (
    select max(c.sequence)
    from jsonb_each(?1) o
    join perdure.checkpoints c on c.actor_type = o.value->>0 and c.actor_id = o.value->>1 and c.sequence <= o.value->>2
    where o.value->>0 = perdure.actor_log.actor_type and o.value->>1 = perdure.actor_log.actor_id
  )
;
delete from perdure.checkpoints
where (actor_type, actor_id) in (select value->>0, value->>1 from jsonb_each(?1))
  and sequence < (
    select max(c.sequence)
    from jsonb_each(?1) o
    join perdure.checkpoints c on c.actor_type = o.value->>0 and c.actor_id = o.value->>1 and c.sequence <= o.value->>2
    where o.value->>0 = perdure.checkpoints.actor_type and o.value->>1 = perdure.checkpoints.actor_id
  )

-- name: ActorKeyPurge
delete from perdure.actor_keys
where (actor_type, actor_id, key) in (
  select actor_type, actor_id, key
  from perdure.actor_keys
  where created_at <= ?1 - ?2
  order by created_at
  limit ?3
)

-- name: ActorDelete
-- Deletes everything that is stored of an actor, except its effects.
delete from perdure.actor_log where actor_type = ?1 and actor_id = ?2
;
delete from perdure.actor_keys where actor_type = ?1 and actor_id = ?2
;
delete from perdure.checkpoints where actor_type = ?1 and actor_id = ?2
;
delete from perdure.timers where actor_type = ?1 and actor_id = ?2
;
delete from perdure.tokens where kind = 'actor' and actor_type = ?1 and actor_id = ?2
;
delete from perdure.actors where type = ?1 and id = ?2
