-- Requests that must not run twice.

-- name: IdempotencyGet
select i.fingerprint, i.response
from perdure.idempotency i
where i.principal = ? and i.key = ?

-- name: IdempotencyAnswer
update perdure.idempotency as i
set response = ?
where i.principal = ? and i.key = ?

-- name: IdempotencyInsert
-- Waits for a concurrent request with the same key.
insert into perdure.idempotency (principal, key, fingerprint, created_at)
values (?, ?, ?, {now ?})
on conflict do nothing

-- name: IdempotencyDelete
delete from perdure.idempotency
where principal = ? and key = ?

-- name: IdempotencyPurge
delete from perdure.idempotency
where (principal, key) in (
  select principal, key
  from perdure.idempotency
  where created_at <= {now ?} - {us {bigint ?}}
  order by created_at
  limit ?
)

-- name: ResponseReseal
update perdure.idempotency
set response = ?1
where response is not null and principal = {json ?2} ->> 0 and key = {json ?2} ->> 1 and {text response} = ?3
