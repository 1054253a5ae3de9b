-- Requests that must not be done twice, on SQLite.

-- name: IdempotencyInsert
insert into perdure.idempotency (principal, key, fingerprint, created_at)
values (?, ?, ?, ?)
on conflict do nothing

-- name: IdempotencyPurge
delete from perdure.idempotency
where (principal, key) in (
  select principal, key
  from perdure.idempotency
  where created_at <= ? - ?
  order by created_at
  limit ?
)

-- name: ResponseSealed
-- A row is named by its key as a JSON array.
select json_array(principal, key), principal, key, response
from perdure.idempotency
where response is not null and (principal, key) > (?1 ->> 0, ?1 ->> 1)
order by principal, key
limit ?2

-- name: ResponseReseal
update perdure.idempotency
set response = ?1
where response is not null and principal = ?2 ->> 0 and key = ?2 ->> 1 and response = ?3
