-- What is sealed of hooks, on MySQL.

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
