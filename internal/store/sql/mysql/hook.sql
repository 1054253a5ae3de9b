-- Durable hooks, on MySQL. now is given by tests; otherwise it is null and the server's
-- clock decides. Sets are passed as JSON, an array for each row; a lone ; stands between
-- the statements of one name. Values are numbered, see bind.go.
--
-- A statement that changes rows locks what it reads of other tables, unless it is an
-- insert. What a claim has locked is therefore kept in a variable of the session, and
-- joins that change rows say their order.

-- Pieces of the statements in family.sql.

-- name: Hook.ClaimColumns
h.id, coalesce(h.key, h.id), h.name, h.payload, h.priority, h.policy, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at

-- name: Hook.Public
coalesce(h.key, h.id)

-- name: Hook.Name
h.name

-- name: Hook.Ends
select id, 'ended' from perdure.hook_ends

-- name: Hook.Live
e.id is null

-- name: Hook.LiveJoin
left join perdure.hook_ends e on e.id = h.id

-- name: Hook.Returned
h.next_attempt_at = case when o.delay > 0 then coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond end,

-- name: Hook.Postponed
next_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?3 microsecond,

-- name: HookInsert
insert into perdure.hook_items (id, `key`, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
  t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now)
from (
  select coalesce(cast(?12 as datetime(6)), utc_timestamp(6)) as at_now,
    coalesce(cast(?13 as datetime(6)), coalesce(cast(?14 as datetime(6)), utc_timestamp(6)) + interval ?15 microsecond) as at_due
) t
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?1

-- name: HookTried
-- Attempts that failed. The hooks are due again after a delay, unless that is null.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', error longtext path '$[1]', took bigint path '$[2]', delay bigint path '$[3]')) o
straight_join perdure.hook_items h on h.id = o.id
set h.attempt = h.attempt + 1, h.batch_limit = null, h.error = o.error,
  h.last_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond,
  h.next_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond,
  h.due_at = coalesce(coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond, h.due_at)

-- name: HookEnd
-- created_at is given in microseconds since 1970.
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select o.id, o.status, o.error, ?1, cast('1970-01-01 00:00:00' as datetime(6)) + interval o.created_at microsecond,
  coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', status varchar(16) collate {collation} path '$[1]', error longtext path '$[2]', created_at bigint path '$[3]', took bigint path '$[4]'
)) o

-- name: HookFind
-- Locks a hook, by the id that its user knows.
select h.id, h.namespace
from perdure.hook_items h
where h.id = (
  select k.id
  from perdure.hook_items k
  where k.key = ?1
  union all
  select k.id
  from perdure.hook_items k
  where k.id = ?2 and k.key is null
  limit 1
)
for update

-- name: HookGet
select h.id, coalesce(h.key, h.id), h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'running' else 'ready' end), h.priority, h.policy,
  h.max_attempts, h.attempt + case when e.status = 'done' then 1 else 0 end, h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?

-- name: HookUnend
delete from perdure.hook_ends
where id = ?1

-- name: HookRevive
-- A hook that starts over: due now, with all attempts before it.
update perdure.hook_items
set attempt = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
where id = ?2

-- name: HookHasten
-- A hook that waits no longer.
update perdure.hook_items
set next_attempt_at = null, due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
where id = ?2

-- name: HookCancel
-- The end of a hook that is in no other place any more. A process that completes the hook
-- does not lock it: its end may be there, or be committed while this waits for it.
insert ignore into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
from perdure.hook_items h
where h.id = ?2

-- name: HookQuarantine
-- The end of a hook that has crashed too many processes.
update perdure.hook_items h
set h.crashes = h.crashes + 1, h.error = ?1, h.last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where locate(h.id, l.ids) > 0), h.last_attempt_at)
where h.id = ?3
;
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select h.id, 'quarantined', ?1, h.created_at, h.last_attempt_at, coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
from perdure.hook_items h
where h.id = ?3

-- name: HookDelete
delete a
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.attempts a on a.kind = 'hook' and a.id = o.id and a.actor_type = '' and a.actor_id = ''
;
delete e
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_ends e on e.id = o.id
;
delete h
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id

-- name: HookPurge
select id
from perdure.hook_ends force index (hook_ends_at_idx)
where dead = 0 and finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by finished_at
limit ?3
for update skip locked

-- name: HookPurgeDead
select id
from perdure.hook_ends force index (hook_ends_at_idx)
where dead = 1 and finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by finished_at
limit ?3
for update skip locked

-- name: HookTaken
-- A row whose id a user chooses for another hook.
select 1
from perdure.hook_items
where `key` is null and id = ?
