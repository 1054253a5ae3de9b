-- Requests that must not be done twice.

-- name: IdempotencyGet
select i.fingerprint, i.response
from perdure.idempotency i
where i.principal = ? and i.key = ?

-- name: IdempotencyAnswer
update perdure.idempotency as i
set response = ?
where i.principal = ? and i.key = ?
