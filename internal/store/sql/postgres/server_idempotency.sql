-- Requests that must not be done twice, on PostgreSQL.

-- name: IdempotencyInsert
-- Waits for another request with the same key, if one is being answered.
insert into perdure.idempotency (principal, key, fingerprint, created_at)
values (?, ?, ?, coalesce(?::timestamptz, now()))
on conflict do nothing

-- name: IdempotencyPurge
delete from perdure.idempotency
where (principal, key) in (
  select principal, key
  from perdure.idempotency
  where created_at <= coalesce(?::timestamptz, now()) - ?::bigint * interval '1 microsecond'
  order by created_at
  limit ?
)

-- name: ResponseSealed
-- A row is named by its key as a JSON array.
select json_build_array(principal, key)::text, principal, key, response::text
from perdure.idempotency
where response is not null and (principal, key) > ($1::json ->> 0, $1::json ->> 1)
order by principal, key
limit $2

-- name: ResponseReseal
update perdure.idempotency
set response = $1
where response is not null and principal = $2::json ->> 0 and key = $2::json ->> 1 and response::text = $3
