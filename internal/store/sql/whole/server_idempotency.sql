-- Requests that must not be done twice.

-- name: IdempotencyGet
select fingerprint, response
from perdure.idempotency
where principal = ? and key = ?

-- name: IdempotencyAnswer
update perdure.idempotency
set response = ?
where principal = ? and key = ?
