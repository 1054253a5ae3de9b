-- Durable hooks, on MySQL. Tests pass the time as now; otherwise now is null and the
-- server's clock decides. A set is passed as JSON, with an array for each row. A line
-- with only a semicolon separates the statements of one name. Values are numbered; see
-- bind.go.
--
-- A statement that changes rows also locks the rows that it reads from other tables,
-- unless it is an insert. The rows that a claim has locked are therefore kept in a
-- session variable, and joins that change rows fix their order.

-- Parts of the statements in family.sql.

-- name: Hook.Live
e.id is null

-- name: Hook.LiveJoin
left join perdure.hook_ends e on e.id = h.id

-- name: Hook.Returned
h.next_attempt_at = case when o.delay > 0 then coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond end,

-- name: Hook.Postponed
next_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?3 microsecond,

-- name: HookInsert
insert into perdure.hook_items (id, `key`, created_at, next_attempt_at, due_at, {piece Columns})
select ?4, ?5, t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now), {piece Values}
from (select {now ?1} as at_now, coalesce(cast(?2 as datetime(6)), {now ?1} + {us ?3}) as at_due) t
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?4

-- name: HookInsertAbsent
-- Inserts no row if the id is taken. A concurrent insert of the same id waits.
insert ignore into perdure.hook_items (id, `key`, created_at, next_attempt_at, due_at, {piece Columns})
select ?4, ?5, t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now), {piece Values}
from (select {now ?1} as at_now, coalesce(cast(?2 as datetime(6)), {now ?1} + {us ?3}) as at_due) t
where not exists (select 1 from perdure.hook_items h where h.`key` is null and h.id = ?15)
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?4

-- name: HookTried
-- Records failed attempts. The hooks are due again after a delay, unless the delay is
-- null.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', error longtext path '$[1]', took bigint path '$[2]', delay bigint path '$[3]')) o
straight_join perdure.hook_items h on h.id = o.id
set h.attempt = h.attempt + 1, h.batch_limit = null, h.error = o.error,
  h.last_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond,
  h.next_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond,
  h.due_at = coalesce(coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond, h.due_at)

-- name: HookEnd
-- created_at is in microseconds since 1970.
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select o.id, o.status, o.error, ?1, cast('1970-01-01 00:00:00' as datetime(6)) + interval o.created_at microsecond,
  coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', status varchar(16) collate {collation} path '$[1]', error longtext path '$[2]', created_at bigint path '$[3]', took bigint path '$[4]'
)) o

-- name: HookFind
-- Locks a hook by its public id.
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

-- name: HookCancel
-- Finishes a hook that is no longer in any other place. A process that completes the hook
-- does not lock it: its end may exist already, or be committed while this statement waits
-- for it.
insert ignore into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
from perdure.hook_items h
where h.id = ?2

-- name: HookQuarantine
-- Quarantines a hook after too many crashes.
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
-- Returns a row if the id that a user chose is the id of another hook's row.
select 1
from perdure.hook_items
where `key` is null and id = ?
