-- Tokens and sessions.

-- name: TokenList
select id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, created_at, used_at, expires_at, revoked_at, scope
from perdure.tokens
where kind = 'api'
order by id

-- name: TokensOfActor
-- Returns the tokens of one actor before an id, newest first.
select id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, created_at, used_at, expires_at, revoked_at, scope
from perdure.tokens
where kind = 'actor' and actor_type = ? and actor_id = ? and id < ?
order by id desc
limit ?

-- name: TokensOfActors
-- Returns the tokens of all actors before an id, newest first.
select id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, created_at, used_at, expires_at, revoked_at, scope
from perdure.tokens
where kind = 'actor' and id < ?
order by id desc
limit ?

-- name: TokenForget
delete from perdure.tokens
where hash = ? and kind = 'session'

-- name: TokenEver
select 1
from perdure.tokens
where kind = 'api'
limit 1

-- name: TokenPurge
-- The newest API token is kept: it shows that an API token has existed.
delete from perdure.tokens
where id in (
  select t.id
  from perdure.tokens t
  where t.expires_at < {now ?} - {us {bigint ?}}
    and (t.kind <> 'api' or exists (select 1 from perdure.tokens n where n.kind = 'api' and n.id > t.id))
  order by t.expires_at
  limit ?
  {lock for update of t skip locked})
