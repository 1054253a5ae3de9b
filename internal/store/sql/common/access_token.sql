-- Access token: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: TokenAny
select 1
from perdure.tokens
where kind = 'api' and revoked_at is null and (expires_at is null or expires_at > {now ?})
limit 1

-- name: TokenRevoke
update perdure.tokens
set revoked_at = {now ?}
where id = ? and kind <> 'session' and revoked_at is null
