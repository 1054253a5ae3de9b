-- What is sealed of hooks, on SQLite.

-- name: HookSealed
select id, payload
from perdure.hooks
where id > ?
order by id
limit ?

-- name: HookReseal
update perdure.hooks
set payload = ?
where id = ? and payload = ?
