-- What is sealed, when it is sealed with another key, on MySQL. A value that is written
-- again must be as it was read: another process may have changed it concurrently. A row
-- whose key has several columns is named by them as a JSON array.

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
