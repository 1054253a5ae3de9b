-- The encrypted values of state machines, on SQLite. A value is rewritten only if
-- it is unchanged since it was read: another process may have changed it
-- concurrently.

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
select cast(seq as text), target_id, name, payload
from perdure.signals
where seq > cast(? as integer)
order by seq
limit ?

-- name: SignalReseal
update perdure.signals
set payload = ?
where seq = cast(? as integer) and payload = ?
