-- The encrypted values of hooks, on SQLite.

-- name: HookSealed
select id, coalesce(key, id), payload
from perdure.hook_items
where id > ?
order by id
limit ?

-- name: HookReseal
update perdure.hook_items
set payload = ?
where id = ? and payload = ?
