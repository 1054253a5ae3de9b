-- Tokens and sessions, on PostgreSQL.

-- name: TokenInsert
insert into perdure.tokens (
  id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, idle, created_at, expires_at)
select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::bigint, t.now, t.now + ?::bigint * interval '1 microsecond'
from (select coalesce(?::timestamptz, now()) as now) as t

-- name: TokenFind
-- Only one that is good now; a session also needs a good token.
select t.id, t.kind, t.hash, t.name, coalesce(p.role, t.role), t.actor_type, t.actor_id, t.caller_kind, t.caller_id, t.parent_id,
  t.created_at, t.used_at, t.expires_at, t.revoked_at
from (select coalesce(?::timestamptz, now()) as now) as c, perdure.tokens as t left join perdure.tokens as p on p.id = t.parent_id
where t.hash = ? and t.revoked_at is null and (t.expires_at is null or t.expires_at > c.now)
  and (t.idle is null or coalesce(t.used_at, t.created_at) + t.idle * interval '1 microsecond' > c.now)
  and (t.parent_id is null or p.revoked_at is null and (p.expires_at is null or p.expires_at > c.now))

-- name: TokenTouch
-- Only now and then: a token that is used all the time costs few writes.
update perdure.tokens
set used_at = t.now
from (select coalesce(?::timestamptz, now()) as now) as t
where id = ? and (used_at is null or used_at <= t.now - ?::bigint * interval '1 microsecond')
