-- Tokens and sessions.

-- name: TokenList
select id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, created_at, used_at, expires_at, revoked_at
from perdure.tokens
where kind = 'api'
order by id

-- name: TokenForget
delete from perdure.tokens
where hash = ? and kind = 'session'

-- name: TokenEver
select 1
from perdure.tokens
where kind = 'api'
limit 1
