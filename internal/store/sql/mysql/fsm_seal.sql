-- What is sealed of state machines, on MySQL. Whatever is written again must be as it was
-- read: another process may have changed it meanwhile.

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
