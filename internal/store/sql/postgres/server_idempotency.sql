-- Requests that must not run twice, on PostgreSQL.

-- name: ResponseSealed
-- A row is named by its key as a JSON array.
select json_build_array(principal, key)::text, principal, key, response::text
from perdure.idempotency
where response is not null and (principal, key) > ($1::json ->> 0, $1::json ->> 1)
order by principal, key
limit $2
