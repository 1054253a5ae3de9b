-- Requests that must not run twice, on SQLite.

-- name: ResponseSealed
-- A row is named by its key as a JSON array.
select json_array(principal, key), principal, key, response
from perdure.idempotency
where response is not null and (principal, key) > (?1 ->> 0, ?1 ->> 1)
order by principal, key
limit ?2
