-- The encrypted values of actors, on PostgreSQL. A row is named by its key as a JSON
-- array.

-- name: InputSealed
select json_build_array(type, id)::text, type, id, input::text
from perdure.actors
where input is not null and (type, id) > ($1::json ->> 0, $1::json ->> 1)
order by type, id
limit $2

-- name: InputReseal
update perdure.actors
set input = $1
where input is not null and type = $2::json ->> 0 and id = $2::json ->> 1 and input::text = $3

-- name: SnapshotSealed
select json_build_array(type, id)::text, type, id, snapshot::text
from perdure.actors
where snapshot is not null and (type, id) > ($1::json ->> 0, $1::json ->> 1)
order by type, id
limit $2

-- name: SnapshotReseal
update perdure.actors
set snapshot = $1
where type = $2::json ->> 0 and id = $2::json ->> 1 and snapshot::text = $3

-- name: PointSnapshotSealed
select json_build_array(actor_type, actor_id, sequence)::text, actor_type, actor_id, sequence::text, snapshot::text
from perdure.checkpoints
where (actor_type, actor_id, sequence) > ($1::json ->> 0, $1::json ->> 1, ($1::json ->> 2)::bigint)
order by actor_type, actor_id, sequence
limit $2

-- name: PointSnapshotReseal
update perdure.checkpoints
set snapshot = $1
where actor_type = $2::json ->> 0 and actor_id = $2::json ->> 1 and sequence = ($2::json ->> 2)::bigint and snapshot::text = $3

-- name: PointTimersSealed
select json_build_array(actor_type, actor_id, sequence)::text, actor_type, actor_id, sequence::text, timers::text
from perdure.checkpoints
where (actor_type, actor_id, sequence) > ($1::json ->> 0, $1::json ->> 1, ($1::json ->> 2)::bigint)
order by actor_type, actor_id, sequence
limit $2

-- name: PointTimersReseal
update perdure.checkpoints
set timers = $1
where actor_type = $2::json ->> 0 and actor_id = $2::json ->> 1 and sequence = ($2::json ->> 2)::bigint and timers::text = $3

-- name: LogEventSealed
select json_build_array(actor_type, actor_id, sequence)::text, actor_type, actor_id, sequence::text, event::text
from perdure.actor_log
where event is not null and (actor_type, actor_id, sequence) > ($1::json ->> 0, $1::json ->> 1, ($1::json ->> 2)::bigint)
order by actor_type, actor_id, sequence
limit $2

-- name: LogEventReseal
update perdure.actor_log
set event = $1
where event is not null and actor_type = $2::json ->> 0 and actor_id = $2::json ->> 1 and sequence = ($2::json ->> 2)::bigint and event::text = $3

-- name: LogSaidSealed
select json_build_array(actor_type, actor_id, sequence)::text, actor_type, actor_id, sequence::text, said::text
from perdure.actor_log
where said is not null and (actor_type, actor_id, sequence) > ($1::json ->> 0, $1::json ->> 1, ($1::json ->> 2)::bigint)
order by actor_type, actor_id, sequence
limit $2

-- name: LogSaidReseal
update perdure.actor_log
set said = $1
where said is not null and actor_type = $2::json ->> 0 and actor_id = $2::json ->> 1 and sequence = ($2::json ->> 2)::bigint and said::text = $3

-- name: TimerSealed
select json_build_array(actor_type, actor_id, alarm_id)::text, actor_type, actor_id, alarm_id, payload::text
from perdure.timers
where payload is not null and (actor_type, actor_id, alarm_id) > ($1::json ->> 0, $1::json ->> 1, $1::json ->> 2)
order by actor_type, actor_id, alarm_id
limit $2

-- name: TimerReseal
update perdure.timers
set payload = $1
where payload is not null and actor_type = $2::json ->> 0 and actor_id = $2::json ->> 1 and alarm_id = $2::json ->> 2 and payload::text = $3
