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
