-- The encrypted values of state machines, on PostgreSQL. A value is rewritten only
-- if it is unchanged since it was read: another process may have changed it
-- concurrently.

-- name: StateSealed
select id::text, state::text
from perdure.instances
where id > ?::text::uuid
order by id
limit ?

-- name: StateReseal
update perdure.instances
set state = ?
where id = ?::text::uuid and state::text = ?

-- name: EndStateSealed
select id::text, state::text
from perdure.finished
where id > ?::text::uuid and state is not null
order by id
limit ?

-- name: EndStateReseal
update perdure.finished
set state = ?
where id = ?::text::uuid and state::text = ?

-- name: ResultSealed
select id::text, result::text
from perdure.finished
where id > ?::text::uuid and result is not null
order by id
limit ?

-- name: ResultReseal
update perdure.finished
set result = ?
where id = ?::text::uuid and result::text = ?

-- name: SignalSealed
select seq::text, target_id::text, name, payload::text
from perdure.signals
where seq > ?::text::bigint
order by seq
limit ?

-- name: SignalReseal
update perdure.signals
set payload = ?
where seq = ?::text::bigint and payload::text = ?
