-- The encrypted values of hooks, on PostgreSQL.

-- name: HookSealed
select id::text, coalesce(key, id::text), payload::text
from perdure.hook_items
where id > ?::text::uuid
order by id
limit ?

-- name: HookReseal
update perdure.hook_items
set payload = ?
where id = ?::text::uuid and payload::text = ?
