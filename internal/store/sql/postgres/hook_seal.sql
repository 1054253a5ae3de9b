-- What is sealed of hooks, on PostgreSQL.

-- name: HookSealed
select id, payload::text
from perdure.hooks
where id > ?
order by id
limit ?

-- name: HookReseal
update perdure.hooks
set payload = ?
where id = ? and payload::text = ?
