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
