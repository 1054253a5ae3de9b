-- The encrypted values of actors, on SQLite. A row is named by its key as a JSON
-- array.

-- name: InputSealed
select json_array(type, id), type, id, input
from perdure.actors
where input is not null and (type, id) > (?1 ->> 0, ?1 ->> 1)
order by type, id
limit ?2

-- name: InputReseal
update perdure.actors
set input = ?1
where input is not null and type = ?2 ->> 0 and id = ?2 ->> 1 and input = ?3

-- name: SnapshotSealed
select json_array(type, id), type, id, snapshot
from perdure.actors
where snapshot is not null and (type, id) > (?1 ->> 0, ?1 ->> 1)
order by type, id
limit ?2

-- name: SnapshotReseal
update perdure.actors
set snapshot = ?1
where type = ?2 ->> 0 and id = ?2 ->> 1 and snapshot = ?3

-- name: PointSnapshotSealed
select json_array(actor_type, actor_id, sequence), actor_type, actor_id, cast(sequence as text), snapshot
from perdure.checkpoints
where (actor_type, actor_id, sequence) > (?1 ->> 0, ?1 ->> 1, ?1 ->> 2)
order by actor_type, actor_id, sequence
limit ?2

-- name: PointSnapshotReseal
update perdure.checkpoints
set snapshot = ?1
where actor_type = ?2 ->> 0 and actor_id = ?2 ->> 1 and sequence = ?2 ->> 2 and snapshot = ?3

-- name: PointTimersSealed
select json_array(actor_type, actor_id, sequence), actor_type, actor_id, cast(sequence as text), timers
from perdure.checkpoints
where (actor_type, actor_id, sequence) > (?1 ->> 0, ?1 ->> 1, ?1 ->> 2)
order by actor_type, actor_id, sequence
limit ?2

-- name: PointTimersReseal
update perdure.checkpoints
set timers = ?1
where actor_type = ?2 ->> 0 and actor_id = ?2 ->> 1 and sequence = ?2 ->> 2 and timers = ?3

-- name: LogEventSealed
select json_array(actor_type, actor_id, sequence), actor_type, actor_id, cast(sequence as text), event
from perdure.actor_log
where event is not null and (actor_type, actor_id, sequence) > (?1 ->> 0, ?1 ->> 1, ?1 ->> 2)
order by actor_type, actor_id, sequence
limit ?2

-- name: LogEventReseal
update perdure.actor_log
set event = ?1
where event is not null and actor_type = ?2 ->> 0 and actor_id = ?2 ->> 1 and sequence = ?2 ->> 2 and event = ?3

-- name: LogSaidSealed
select json_array(actor_type, actor_id, sequence), actor_type, actor_id, cast(sequence as text), said
from perdure.actor_log
where said is not null and (actor_type, actor_id, sequence) > (?1 ->> 0, ?1 ->> 1, ?1 ->> 2)
order by actor_type, actor_id, sequence
limit ?2

-- name: LogSaidReseal
update perdure.actor_log
set said = ?1
where said is not null and actor_type = ?2 ->> 0 and actor_id = ?2 ->> 1 and sequence = ?2 ->> 2 and said = ?3

-- name: TimerSealed
select json_array(actor_type, actor_id, alarm_id), actor_type, actor_id, alarm_id, payload
from perdure.timers
where payload is not null and (actor_type, actor_id, alarm_id) > (?1 ->> 0, ?1 ->> 1, ?1 ->> 2)
order by actor_type, actor_id, alarm_id
limit ?2

-- name: TimerReseal
update perdure.timers
set payload = ?1
where payload is not null and actor_type = ?2 ->> 0 and actor_id = ?2 ->> 1 and alarm_id = ?2 ->> 2 and payload = ?3
