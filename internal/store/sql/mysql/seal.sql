-- Encrypted values, on MySQL. A claim adds the conditions once it has met a value whose key
-- this process lacks (see openable.go). The other statements re-encrypt values with another
-- key. A value is rewritten only if it is unchanged since it was read: another process may
-- have changed it concurrently. A row whose key has several columns is named by a JSON
-- array of them.

-- name: Foreign
-- A value that is encrypted with a key that this process does not have.
coalesce(case when left({value}, 16) = '{"$sealed":"v1",' then json_unquote(json_extract({value}, '$.key')) not in ({ids}) end, false)

-- name: OpenableRow
not {foreign {of}}

-- name: OpenableInstance
-- A step reads the state, the signals, the journal, and the children of the last fan-out. A limit
-- replaces exists: MariaDB would read the whole tables.
(
  select 1
  from perdure.instances o
  where o.id = {of} and {foreign o.state}
  limit 1
) is null and (
  select 1
  from perdure.signals o
  where o.target_id = {of} and {foreign o.payload}
  limit 1
) is null and (
  select 1
  from perdure.journal o
  where o.instance_id = {of} and {foreign o.result}
  limit 1
) is null and (
  select 1
  from perdure.instances o
  straight_join perdure.instances c on c.parent_id = o.id and c.parent_fanout in (o.fanout, 0 - o.fanout)
  left join perdure.finished f on f.id = c.id
  where o.id = {of} and o.fanout > 0 and ({foreign f.result} or {foreign f.state} or f.state is null and {foreign c.state})
  limit 1
) is null

-- name: OpenableHook
not exists (
  select 1
  from perdure.hook_items o
  where o.id = {of} and {foreign o.payload}
)

-- name: OpenableAlarm
not exists (
  select 1
  from perdure.alarm_items o
  where o.id = {of} and {foreign o.payload}
)

-- name: OpenableActor
-- A transition reads the input, the snapshot and all timers of the actor. A limit replaces
-- exists: see OpenableInstance.
(
  select 1
  from perdure.actors o
  where o.type = {of}.actor_type and o.id = {of}.actor_id and ({foreign o.input} or {foreign o.snapshot})
  limit 1
) is null and (
  select 1
  from perdure.timers o
  where o.actor_type = {of}.actor_type and o.actor_id = {of}.actor_id and {foreign o.payload}
  limit 1
) is null

-- name: HookSealed
select h.id, coalesce(h.key, h.id), h.payload
from perdure.hook_items h
where h.id > ?
order by h.id
limit ?

-- name: HookReseal
update perdure.hook_items
set payload = ?
where id = ? and payload = ?

-- name: StateSealed
select id, state
from perdure.instances
where id > ?
order by id
limit ?

-- name: StateReseal
update perdure.instances
set state = ?
where id = ? and state = ?

-- name: EndStateSealed
select id, state
from perdure.finished
where id > ? and state is not null
order by id
limit ?

-- name: EndStateReseal
update perdure.finished
set state = ?
where id = ? and state = ?

-- name: ResultSealed
select id, result
from perdure.finished
where id > ? and result is not null
order by id
limit ?

-- name: ResultReseal
update perdure.finished
set result = ?
where id = ? and result = ?

-- name: SignalSealed
select cast(seq as char), target_id, name, payload
from perdure.signals
where seq > cast(? as signed)
order by seq
limit ?

-- name: SignalReseal
update perdure.signals
set payload = ?
where seq = cast(? as signed) and payload = ?

-- name: RemoteSealed
select concat(fsm, '/', version), secrets
from perdure.remote_definitions
where concat(fsm, '/', version) > ?
order by 1
limit ?

-- name: RemoteReseal
update perdure.remote_definitions
set secrets = ?
where concat(fsm, '/', version) = ? and secrets = ?

-- name: AlarmSealed
select json_array(actor_type, convert(actor_id using utf8mb4), convert(alarm_id using utf8mb4)), actor_type, actor_id, alarm_id, payload
from perdure.alarm_items
where (actor_type, actor_id, alarm_id) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')), json_unquote(json_extract(?1, '$[2]')))
order by actor_type, actor_id, alarm_id
limit ?2

-- name: AlarmReseal
update perdure.alarm_items
set payload = ?1
where actor_type = json_unquote(json_extract(?2, '$[0]')) and actor_id = json_unquote(json_extract(?2, '$[1]')) and alarm_id = json_unquote(json_extract(?2, '$[2]')) and payload = ?3

-- name: InputSealed
select json_array(type, convert(id using utf8mb4)), type, id, input
from perdure.actors
where input is not null and (type, id) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')))
order by type, id
limit ?2

-- name: InputReseal
update perdure.actors
set input = ?1
where type = json_unquote(json_extract(?2, '$[0]')) and id = json_unquote(json_extract(?2, '$[1]')) and input = ?3

-- name: SnapshotSealed
select json_array(type, convert(id using utf8mb4)), type, id, snapshot
from perdure.actors
where snapshot is not null and (type, id) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')))
order by type, id
limit ?2

-- name: SnapshotReseal
update perdure.actors
set snapshot = ?1
where type = json_unquote(json_extract(?2, '$[0]')) and id = json_unquote(json_extract(?2, '$[1]')) and snapshot = ?3

-- name: PointSnapshotSealed
select json_array(actor_type, convert(actor_id using utf8mb4), sequence), actor_type, actor_id, cast(sequence as char), snapshot
from perdure.checkpoints
where (actor_type, actor_id, sequence) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')), cast(json_unquote(json_extract(?1, '$[2]')) as signed))
order by actor_type, actor_id, sequence
limit ?2

-- name: PointSnapshotReseal
update perdure.checkpoints
set snapshot = ?1
where actor_type = json_unquote(json_extract(?2, '$[0]')) and actor_id = json_unquote(json_extract(?2, '$[1]')) and sequence = cast(json_unquote(json_extract(?2, '$[2]')) as signed) and snapshot = ?3

-- name: PointTimersSealed
select json_array(actor_type, convert(actor_id using utf8mb4), sequence), actor_type, actor_id, cast(sequence as char), timers
from perdure.checkpoints
where (actor_type, actor_id, sequence) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')), cast(json_unquote(json_extract(?1, '$[2]')) as signed))
order by actor_type, actor_id, sequence
limit ?2

-- name: PointTimersReseal
update perdure.checkpoints
set timers = ?1
where actor_type = json_unquote(json_extract(?2, '$[0]')) and actor_id = json_unquote(json_extract(?2, '$[1]')) and sequence = cast(json_unquote(json_extract(?2, '$[2]')) as signed) and timers = ?3

-- name: LogEventSealed
select json_array(actor_type, convert(actor_id using utf8mb4), sequence), actor_type, actor_id, cast(sequence as char), event
from perdure.actor_log
where event is not null and (actor_type, actor_id, sequence) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')), cast(json_unquote(json_extract(?1, '$[2]')) as signed))
order by actor_type, actor_id, sequence
limit ?2

-- name: LogEventReseal
update perdure.actor_log
set event = ?1
where actor_type = json_unquote(json_extract(?2, '$[0]')) and actor_id = json_unquote(json_extract(?2, '$[1]')) and sequence = cast(json_unquote(json_extract(?2, '$[2]')) as signed) and event = ?3

-- name: LogSaidSealed
select json_array(actor_type, convert(actor_id using utf8mb4), sequence), actor_type, actor_id, cast(sequence as char), said
from perdure.actor_log
where said is not null and (actor_type, actor_id, sequence) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')), cast(json_unquote(json_extract(?1, '$[2]')) as signed))
order by actor_type, actor_id, sequence
limit ?2

-- name: LogSaidReseal
update perdure.actor_log
set said = ?1
where actor_type = json_unquote(json_extract(?2, '$[0]')) and actor_id = json_unquote(json_extract(?2, '$[1]')) and sequence = cast(json_unquote(json_extract(?2, '$[2]')) as signed) and said = ?3

-- name: TimerSealed
select json_array(actor_type, convert(actor_id using utf8mb4), convert(alarm_id using utf8mb4)), actor_type, actor_id, alarm_id, payload
from perdure.timers
where payload is not null and (actor_type, actor_id, alarm_id) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')), json_unquote(json_extract(?1, '$[2]')))
order by actor_type, actor_id, alarm_id
limit ?2

-- name: TimerReseal
update perdure.timers
set payload = ?1
where actor_type = json_unquote(json_extract(?2, '$[0]')) and actor_id = json_unquote(json_extract(?2, '$[1]')) and alarm_id = json_unquote(json_extract(?2, '$[2]')) and payload = ?3

-- name: ResponseSealed
select json_array(i.principal, convert(i.key using utf8mb4)), i.principal, i.key, i.response
from perdure.idempotency i
where i.response is not null and (i.principal, i.key) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')))
order by i.principal, i.key
limit ?2

-- name: ResponseReseal
update perdure.idempotency i
set i.response = ?1
where i.principal = json_unquote(json_extract(?2, '$[0]')) and i.key = json_unquote(json_extract(?2, '$[1]')) and i.response = ?3
