-- Tokens and sessions, on SQLite.

-- name: TokenInsert
insert into perdure.tokens (
  id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, idle, created_at, expires_at, scope)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?13, ?13 + ?12, ?14)

-- name: TokenFind
-- Only a valid token or session; a session also needs a valid token.
select t.id, t.kind, t.hash, t.name, coalesce(p.role, t.role), t.actor_type, t.actor_id, t.caller_kind, t.caller_id, t.parent_id,
  t.created_at, t.used_at, t.expires_at, t.revoked_at, coalesce(p.scope, t.scope)
from perdure.tokens as t left join perdure.tokens as p on p.id = t.parent_id
where t.hash = ?2 and t.revoked_at is null and (t.expires_at is null or t.expires_at > ?1)
  and (t.idle is null or coalesce(t.used_at, t.created_at) + t.idle > ?1)
  and (t.parent_id is null or p.revoked_at is null and (p.expires_at is null or p.expires_at > ?1))

-- name: TokenTouch
-- Writes only if the stored time is older than an interval, so a token in constant
-- use costs few writes.
update perdure.tokens
set used_at = ?1
where id = ?2 and (used_at is null or used_at <= ?1 - ?3)
