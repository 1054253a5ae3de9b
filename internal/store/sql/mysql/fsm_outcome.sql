-- Outcomes of steps, many in one statement, on MySQL. The leases are locked and verified
-- first (see lease.sql). The other statements receive only claims that are still held.

-- name: InstanceLock
-- Locks in order. The delivery of a signal takes the same lock first.
select i.id
from (
  select chosen.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.id
  limit 1000000000
) o
straight_join perdure.instances i force index (primary) on i.id = o.id
for update

-- name: InstanceStep
-- Sets the new step and state. No indexed column changes. Progress resets the crashes.
update json_table(?1, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', step varchar(128) path '$[1]', state longtext path '$[2]', attempt int path '$[3]', awaits longtext path '$[4]', keeps tinyint path '$[5]',
  seen longtext path '$[6]', timed_out tinyint path '$[7]', fanout int path '$[8]', dropped longtext path '$[9]', error longtext path '$[10]', delay bigint path '$[11]',
  failures int path '$[12]', awaited longtext path '$[13]', rerun tinyint path '$[14]'
)) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.step = o.step, i.state = o.state, i.attempt = o.attempt, i.failures = o.failures, i.awaits = o.awaits, i.keeps = o.keeps, i.seen = o.seen,
  i.timed_out = o.timed_out, i.crashes = case when o.attempt = 0 then 0 else i.crashes end, i.batch_limit = null, i.fanout = o.fanout, i.dropped = o.dropped, i.error = o.error,
  i.due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond, i.awaited = coalesce(o.awaited, i.awaited), i.rerun = o.rerun, i.wait = null

-- name: InstanceStepPlain
-- InstanceStep for instances that start a step and wait for nothing.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', step varchar(128) path '$[1]', state longtext path '$[2]', fanout int path '$[3]', delay bigint path '$[4]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.step = o.step, i.state = o.state, i.attempt = 0, i.failures = 0, i.awaits = null, i.keeps = 0, i.seen = null, i.timed_out = 0, i.crashes = 0, i.batch_limit = null,
  i.fanout = o.fanout, i.dropped = null, i.error = null, i.due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond, i.rerun = 0, i.wait = null

-- name: SignalLate
-- Returns signals that an instance once awaited and that no step received. Runs after the
-- instances are locked. Senders take the same lock: a signal is visible here, or its sender
-- will find that the instance has finished.
select distinct s.target_id, s.name
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', names longtext path '$[1]', given longtext path '$[2]')) o
straight_join json_table(o.names, '$[*]' columns (name varchar(128) collate {collation} path '$')) n
straight_join perdure.signals s force index (signals_target_idx) on s.target_id = o.id and s.name = n.name
where s.received = 0 and not json_contains(o.given, cast(s.seq as char))

-- name: SignalReceive
update json_table(?1, '$[*]' columns (seq bigint path '$[0]')) o
straight_join perdure.signals s force index (primary) on s.seq = o.seq
set s.received = 1

-- name: SignalConsume
delete s
from json_table(?1, '$[*]' columns (seq bigint path '$[0]')) o
straight_join perdure.signals s force index (primary) on s.seq = o.seq

-- name: AwaitPark
-- Runs after the update of the instance, which locked it: a signal is visible here, or its
-- sender will find the instance waiting.
select json_arrayagg(hit.id) into @perdure_hit
from (
  select distinct o.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', names longtext path '$[1]', seen longtext path '$[2]')) o
  straight_join json_table(o.names, '$[*]' columns (name varchar(128) collate {collation} path '$')) n
  straight_join perdure.signals s force index (signals_target_idx) on s.target_id = o.id and s.name = n.name
  where o.seen is null or not json_contains(o.seen, cast(s.seq as char))
) hit
;
insert into perdure.waiting (id, names, deadline_at)
select o.id, o.names, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.timeout microsecond
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', names longtext path '$[1]', timeout bigint path '$[3]')) o
left join json_table(@perdure_hit, '$[*]' columns (id varchar(36) collate {collation} path '$')) hit on hit.id = o.id
where hit.id is null
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(@perdure_hit, '$[*]' columns (id varchar(36) collate {collation} path '$')) hit
straight_join perdure.instances i force index (primary) on i.id = hit.id
;
select i.queue
from json_table(@perdure_hit, '$[*]' columns (id varchar(36) collate {collation} path '$')) hit
straight_join perdure.instances i force index (primary) on i.id = hit.id

-- name: BarrierInsert
insert into perdure.barriers (parent_id, fanout, pending, until, deadline_at, cancel_rest)
select o.id, o.fanout, o.pending, o.until, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) + interval o.timeout microsecond, o.cancel_rest
from json_table(?2, '$[*]' columns (id varchar(36) path '$[0]', fanout int path '$[1]', pending int path '$[2]', until int path '$[3]', timeout bigint path '$[4]', cancel_rest tinyint path '$[5]')) o

-- name: BarrierOpen
-- Opens barriers whose condition is met. They are locked, or new.
select json_arrayagg(open.parent_id) into @perdure_open
from (
  select distinct b.parent_id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
  where b.pending <= b.until
) open
;
insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select b.parent_id, b.fanout, b.fanout, 'cancel', b.parent_id, 'enough of the children have ended', coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
from json_table(@perdure_open, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
where b.cancel_rest = 1 and b.pending > 0
on duplicate key update seq = perdure.tree_ends.seq
;
delete b
from json_table(@perdure_open, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
;
update json_table(@perdure_open, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(@perdure_open, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
select i.queue
from json_table(@perdure_open, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: BarrierLock
select b.parent_id
from (
  select chosen.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.id
  limit 1000000000
) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
for update

-- name: BarrierCount
update json_table(?1, '$[*]' columns (parent varchar(36) collate {collation} path '$[0]', fanout int path '$[1]', n int path '$[2]')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.parent and b.fanout = o.fanout
set b.pending = b.pending - o.n

-- name: BarrierDelete
delete b
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id

-- name: FinishMany
insert into perdure.finished (id, status, result, error, state, ended_by, finished_at)
select o.id, o.status, o.result, o.error, o.state, o.ended_by, coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (id varchar(36) path '$[0]', status varchar(16) path '$[1]', result longtext path '$[2]', error longtext path '$[3]', state longtext path '$[4]', ended_by varchar(36) path '$[5]')) o

-- name: UniqueLeave
delete u
from json_table(?1, '$[*]' columns (name varchar(128) collate {collation} path '$[0]', wanted varchar(512) collate {collation} path '$[1]', id varchar(36) collate {collation} path '$[2]')) o
straight_join perdure.uniques u force index (primary) on u.name = o.name and u.`key` = o.wanted and u.id = o.id

-- name: DeadlineDelete
-- at is in microseconds since 1970.
delete d
from json_table(?1, '$[*]' columns (at bigint path '$[0]', id varchar(36) collate {collation} path '$[1]')) o
straight_join perdure.deadlines d force index (primary) on d.at = cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond and d.id = o.id

-- name: PartitionLock
select h.`key`
from (
  select chosen.name
  from json_table(?1, '$[*]' columns (name varchar(512) collate {collation} path '$[0]')) chosen
  order by chosen.name
  limit 1000000000
) o
straight_join perdure.partition_heads h force index (primary) on h.`key` = o.name
for update

-- name: PartitionPromote
-- The next instance of each key becomes its head. A key without instances is deleted.
select json_arrayagg(json_array(w.`key`, w.seq, w.id)) into @perdure_next
from (
  select distinct given.name
  from json_table(?1, '$[*]' columns (name varchar(512) collate {collation} path '$[0]')) given
) o
straight_join perdure.partition_waiting w force index (primary) on w.`key` = o.name and w.seq = (select min(x.seq) from perdure.partition_waiting x where x.`key` = o.name)
;
delete w
from json_table(@perdure_next, '$[*]' columns (name varchar(512) collate {collation} path '$[0]', seq bigint path '$[1]')) n
straight_join perdure.partition_waiting w force index (primary) on w.`key` = n.name and w.seq = n.seq
;
update json_table(@perdure_next, '$[*]' columns (name varchar(512) collate {collation} path '$[0]', id varchar(36) path '$[2]')) n
straight_join perdure.partition_heads h force index (primary) on h.`key` = n.name
set h.head = n.id
;
delete h
from json_table(?2, '$[*]' columns (name varchar(512) collate {collation} path '$[0]')) o
straight_join perdure.partition_heads h force index (primary) on h.`key` = o.name
left join json_table(@perdure_next, '$[*]' columns (name varchar(512) collate {collation} path '$[0]', id varchar(36) path '$[2]')) n on n.name = o.name
where n.id is null
;
update json_table(@perdure_next, '$[*]' columns (id varchar(36) collate {collation} path '$[2]')) n
straight_join perdure.instances i force index (primary) on i.id = n.id
set i.due_at = greatest(i.due_at, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)))
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(@perdure_next, '$[*]' columns (id varchar(36) collate {collation} path '$[2]')) n
straight_join perdure.instances i force index (primary) on i.id = n.id
;
select i.queue
from json_table(@perdure_next, '$[*]' columns (id varchar(36) collate {collation} path '$[2]')) n
straight_join perdure.instances i force index (primary) on i.id = n.id

-- name: ChildrenDropped
-- Children whose unique key already existed: the parent does not wait for them, and
-- receives the list.
select json_arrayagg(json_array(o.parent, o.ordinal, u.id)) into @perdure_lost
from json_table(?1, '$[*]' columns (parent varchar(36) collate {collation} path '$[0]', id varchar(36) collate {collation} path '$[1]', ordinal int path '$[2]', name varchar(128) collate {collation} path '$[3]', wanted varchar(512) collate {collation} path '$[4]')) o
left join perdure.uniques u on u.name = o.name and u.`key` = o.wanted
left join perdure.instances i on i.id = o.id
where i.id is null
;
update (
  select l.parent, concat('[', group_concat(json_object('ordinal', l.ordinal, 'existing', l.existing) order by l.ordinal separator ','), ']') as list
  from json_table(@perdure_lost, '$[*]' columns (parent varchar(36) collate {collation} path '$[0]', ordinal int path '$[1]', existing varchar(36) path '$[2]')) l
  group by l.parent
) lost
straight_join perdure.instances i force index (primary) on i.id = lost.parent
set i.dropped = lost.list
;
update (
  select l.parent, count(*) as n
  from json_table(@perdure_lost, '$[*]' columns (parent varchar(36) collate {collation} path '$[0]')) l
  group by l.parent
) lost
straight_join perdure.barriers b force index (primary) on b.parent_id = lost.parent
set b.pending = b.pending - lost.n, b.until = greatest(b.until - lost.n, 0)

-- name: ChildList
select i.id, i.fsm, i.ordinal, f.status, f.result, f.error, coalesce(f.state, i.state)
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.parent_id = ?1 and i.parent_fanout in (?2, 0 - ?2)
order by i.ordinal

-- name: InstanceAttempt
-- Records failed steps. The leases are locked, so no other process records attempts of
-- these instances.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = o.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  o.step, o.attempt, 'failed', o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', step varchar(128) path '$[1]', attempt int path '$[2]', error longtext path '$[3]', took bigint path '$[4]')) o

-- name: InstanceLost
-- Records the attempts of items that a lease loses. The lease is locked.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', i.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = i.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  i.step, i.attempt + i.crashes + 1, ?1, ?2, l.worker, l.claimed_at, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from perdure.leases l
straight_join json_table(?5, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
where l.token = ?4

-- name: InstanceAttemptCap
-- Deletes all attempts except the newest.
delete a
from (
  select b.id, max(b.seq) - 50 as seq
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.attempts b force index (primary) on b.kind = 'instance' and b.id = o.id and b.actor_type = '' and b.actor_id = ''
  group by b.id
) newest
straight_join perdure.attempts a force index (primary) on a.kind = 'instance' and a.id = newest.id and a.actor_type = '' and a.actor_id = '' and a.seq <= newest.seq

-- name: InstanceRunning
-- Returns the worker that runs an instance, and the time of its claim.
select worker, claimed_at
from perdure.leases
where locate(?1, ids) > 0
order by seq desc
limit 1
