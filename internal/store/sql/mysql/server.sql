-- The data of the server, on MySQL: nodes, samples of charts, keys of requests, tokens, the
-- audit log. Tests pass the time as now; otherwise now is null and the server's clock
-- decides.

-- name: SampleInsert
insert into perdure.samples (kind, at, finished, failed, due)
values (?1, ?2, ?3, ?4, ?5)
on duplicate key update kind = perdure.samples.kind

-- name: WaitsInsert
insert into perdure.waits (at, node, buckets)
values (?1, ?2, ?3)
on duplicate key update node = perdure.waits.node

-- name: NodeBeat
-- A requested drain stays requested.
insert into perdure.nodes (id, host, pid, version, roles, work, running, started_at, seen_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(cast(?8 as datetime(6)), utc_timestamp(6)), coalesce(cast(?8 as datetime(6)), utc_timestamp(6)))
on duplicate key update seen_at = values(seen_at), work = values(work), running = values(running)
;
select draining
from perdure.nodes
where id = ?1

-- name: NodeDrain
update perdure.nodes
set draining = 1
where id = ?

-- name: SampleInstances
select count(*), coalesce(sum(dead), 0)
from perdure.finished
where dead in (0, 1) and finished_at > ? and finished_at <= ?

-- name: SampleHooks
select
  (select count(*) from perdure.hook_ends where dead = 0 and finished_at > ?1 and finished_at <= ?2),
  (select count(*) from perdure.hook_ends where dead = 1 and finished_at > ?1 and finished_at <= ?2)

-- name: IdempotencyInsert
-- Waits for a concurrent request with the same key. Not "on duplicate key update": the
-- update would count as a row.
insert ignore into perdure.idempotency (principal, `key`, fingerprint, created_at)
values (?1, ?2, ?3, coalesce(cast(?4 as datetime(6)), utc_timestamp(6)))

-- name: IdempotencyDelete
delete from perdure.idempotency
where principal = ?1 and `key` = ?2

-- name: IdempotencyPurge
delete from perdure.idempotency
where created_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by created_at
limit ?3

-- name: TokenInsert
insert into perdure.tokens (
  id, kind, hash, name, role, actor_type, actor_id, caller_kind, caller_id, parent_id, idle, created_at, expires_at, scope)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, coalesce(cast(?13 as datetime(6)), utc_timestamp(6)),
  coalesce(cast(?13 as datetime(6)), utc_timestamp(6)) + interval ?12 microsecond, ?14)

-- name: TokenFind
-- Only a valid token or session; a session also needs a valid token.
select t.id, t.kind, t.hash, t.name, coalesce(p.role, t.role), t.actor_type, t.actor_id, t.caller_kind, t.caller_id, t.parent_id,
  t.created_at, t.used_at, t.expires_at, t.revoked_at, coalesce(p.scope, t.scope)
from perdure.tokens t
left join perdure.tokens p on p.id = t.parent_id
where t.hash = ?2 and t.revoked_at is null and (t.expires_at is null or t.expires_at > coalesce(cast(?1 as datetime(6)), utc_timestamp(6)))
  and (t.idle is null or coalesce(t.used_at, t.created_at) + interval t.idle microsecond > coalesce(cast(?1 as datetime(6)), utc_timestamp(6)))
  and (t.parent_id is null or p.revoked_at is null and (p.expires_at is null or p.expires_at > coalesce(cast(?1 as datetime(6)), utc_timestamp(6))))

-- name: TokenTouch
-- Writes only if the stored time is older than an interval, so a token in constant use
-- costs few writes.
update perdure.tokens
set used_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
where id = ?2 and (used_at is null or used_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?3 microsecond)

-- name: TokenPurge
-- The newest API token is kept: it shows that an API token has existed.
delete x
from (
  select t.id
  from perdure.tokens t force index (tokens_expires_idx)
  where t.expires_at < coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
    and (t.kind <> 'api' or exists (select 1 from perdure.tokens n where n.kind = 'api' and n.id > t.id))
  order by t.expires_at
  limit ?3
) old
straight_join perdure.tokens x force index (primary) on x.id = old.id

-- name: AuditClaim
-- Locks any chain that no other transaction has locked.
select chain, seq, hash, base_seq, base_hash
from perdure.audit_chains
order by chain
limit 1
for update skip locked

-- name: AuditInsert
insert into perdure.audit (id, chain, seq, at, action, kind, target, principal, label, role, via, address, request, reason, input, `before`, `after`, hash)
select e.id, e.chain, e.seq, cast('1970-01-01 00:00:00' as datetime(6)) + interval e.at microsecond, e.action, e.kind, e.target, e.principal, e.label, e.role,
  e.via, e.address, e.request, e.reason, e.input, e.state_before, e.state_after, e.hash
from json_table(?1, '$[*]' columns (
  id varchar(64) path '$[0]', chain int path '$[1]', seq bigint path '$[2]', at bigint path '$[3]', action varchar(128) path '$[4]', kind varchar(64) path '$[5]',
  target varchar(2048) path '$[6]', principal varchar(256) path '$[7]', label longtext path '$[8]', role varchar(32) path '$[9]', via longtext path '$[10]',
  address longtext path '$[11]', request longtext path '$[12]', reason longtext path '$[13]', input longtext path '$[14]', state_before longtext path '$[15]',
  state_after longtext path '$[16]', hash varchar(128) path '$[17]'
)) e

-- name: AuditStateSchedule
select fsm, version, case when paused = 1 then 'paused' else 'active' end, null, null, next_at, spec
from perdure.schedules
where name = ?
for update
