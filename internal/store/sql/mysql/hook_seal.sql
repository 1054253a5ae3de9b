-- What is sealed of hooks, on MySQL.

-- name: HookSealed
select id, cast(payload as char)
from perdure.hooks
where id > ?
order by id
limit ?

-- name: HookReseal
update perdure.hooks
set payload = ?
where id = ? and cast(payload as char) = ?
