-- Starts and claims of instances, and signals, on MySQL. Tests pass the time as now;
-- otherwise now is null and the server's clock decides. The clock advances between two
-- statements, so a time that two rows share is read from the first row. A set is passed as
-- JSON, with an array for each row. A line with only a semicolon separates the statements
-- of one name. Values are numbered; see bind.go.
--
-- A statement that changes rows also locks the rows that it reads from other tables, unless
-- it is an insert. It therefore reads them before, into a session variable, and joins that
-- change rows fix their order. They also name their index: the planner would scan a small
-- table, which locks rows in another order than a search by the key.
--
-- Signals: a unit may be in a transaction that the user began at the isolation level
-- repeatable read. Then only locking reads see the changes that were committed before the
-- lock of the target.

-- name: InstanceStart
-- The fast path: no unique key, no partition. Times are microseconds since 1970.
insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, deadline_at, created_at)
select o.id, o.fsm, o.version, o.step, o.state, o.queue, o.priority, o.parent, o.fanout, o.ordinal,
  coalesce(cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond),
  coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.deadline microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
from json_table(?1, '$[*]' columns (
  id varchar(36) path '$[0]', fsm varchar(128) path '$[1]', version int path '$[2]', step varchar(128) path '$[3]', state longtext path '$[4]', queue varchar(300) path '$[5]',
  priority smallint path '$[6]', parent varchar(36) path '$[7]', fanout int path '$[8]', ordinal int path '$[9]', at bigint path '$[10]', delay bigint path '$[11]', deadline bigint path '$[12]'
)) o
;
insert into perdure.deadlines (at, id)
select i.deadline_at, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', deadline bigint path '$[12]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
where o.deadline is not null
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: InstanceStartAlike
-- The fastest path: instances that are due now and differ only in their states.
insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at)
select o.id, ?1, ?2, ?3, o.state, ?4, ?5, coalesce(cast(?7 as datetime(6)), utc_timestamp(6)), coalesce(cast(?7 as datetime(6)), utc_timestamp(6))
from json_table(?6, '$[*]' columns (id varchar(36) path '$[0]', state longtext path '$[1]')) o
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(?6, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: InstanceStartAbsent
-- One instance, unless its id is taken. A concurrent start of the same id waits for the
-- first statement. Until the last statement, the mark in the column error shows that this
-- transaction inserted the row.
insert ignore into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, deadline_at, created_at, partition_key, trace, error)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7,
  coalesce(cast(?9 as datetime(6)), coalesce(cast(?8 as datetime(6)), utc_timestamp(6)) + interval ?10 microsecond),
  coalesce(cast(?8 as datetime(6)), utc_timestamp(6)) + interval ?11 microsecond, coalesce(cast(?8 as datetime(6)), utc_timestamp(6)), ?12, ?13, ?14
;
insert into perdure.deadlines (at, id)
select i.deadline_at, i.id
from perdure.instances i
where i.id = ?1 and i.error = ?14 and i.deadline_at is not null
;
insert into perdure.partition_heads (`key`, head, tail)
select i.partition_key, i.id, 0
from perdure.instances i
where i.id = ?1 and i.error = ?14 and i.partition_key is not null
on duplicate key update tail = perdure.partition_heads.tail + 1
;
insert into perdure.partition_waiting (`key`, seq, id)
select h.`key`, h.tail, i.id
from perdure.instances i
straight_join perdure.partition_heads h force index (primary) on h.`key` = i.partition_key
where i.id = ?1 and i.error = ?14 and h.head <> i.id
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from perdure.instances i
left join perdure.partition_heads h on h.`key` = i.partition_key
where i.id = ?1 and i.error = ?14 and (i.partition_key is null or h.head = i.id)
;
update perdure.instances
set error = null
where id = ?1 and error = ?14

-- name: InstanceTrace
-- Separate from the start, which is faster without it: few instances are traced.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', trace text path '$[1]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.trace = o.trace

-- name: UniqueEnter
-- Inserts in the order of the keys, so that two batches cannot deadlock. Of instances with
-- the same key, the first gets it. Existing keys are omitted beforehand: an insert would
-- lock them.
insert ignore into perdure.uniques (name, `key`, id)
select o.name, o.wanted, o.id
from json_table(?1, '$[*]' columns (ord for ordinality, name varchar(128) collate {collation} path '$[0]', wanted varchar(512) collate {collation} path '$[1]', id varchar(36) collate {collation} path '$[2]')) o
left join perdure.uniques u on u.name = o.name and u.`key` = o.wanted
where u.id is null
order by o.name, o.wanted, o.ord

-- name: UniqueOwners
select u.name, u.`key`, u.id
from json_table(?1, '$[*]' columns (name varchar(128) collate {collation} path '$[0]', wanted varchar(512) collate {collation} path '$[1]')) o
straight_join perdure.uniques u force index (primary) on u.name = o.name and u.`key` = o.wanted

-- name: InstanceInsert
-- The general path, first of three: instances that own their unique key, or have none.
insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, deadline_at, created_at,
  partition_key, unique_name, unique_key, unique_scope)
select o.id, o.fsm, o.version, o.step, o.state, o.queue, o.priority, o.parent, o.fanout, o.ordinal,
  coalesce(cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond),
  coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.deadline microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), o.partition_key, o.unique_name, o.unique_key, o.unique_scope
from json_table(?1, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', fsm varchar(128) path '$[1]', version int path '$[2]', step varchar(128) path '$[3]', state longtext path '$[4]', queue varchar(300) path '$[5]',
  priority smallint path '$[6]', parent varchar(36) path '$[7]', fanout int path '$[8]', ordinal int path '$[9]', at bigint path '$[10]', delay bigint path '$[11]', deadline bigint path '$[12]',
  partition_key varchar(512) path '$[13]', unique_name varchar(128) collate {collation} path '$[14]', unique_key varchar(512) collate {collation} path '$[15]', unique_scope smallint path '$[16]'
)) o
left join perdure.uniques u on u.name = o.unique_name and u.`key` = o.unique_key and u.id = o.id
where o.unique_key is null or u.id is not null
;
insert into perdure.deadlines (at, id)
select i.deadline_at, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
where i.deadline_at is not null

-- name: PartitionEnter
-- Second: every partition key in order. Its row is locked until commit, so the order of the
-- queue is the order of commits.
insert into perdure.partition_heads (`key`, head, tail)
select mine.partition_key, mine.id, mine.k - 1
from (
  select i.id, i.partition_key, row_number() over (partition by i.partition_key order by o.ord) as r, count(*) over (partition by i.partition_key) as k
  from json_table(?1, '$[*]' columns (ord for ordinality, id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.instances i force index (primary) on i.id = o.id
  where i.partition_key is not null
) mine
where mine.r = 1
order by mine.partition_key
on duplicate key update tail = perdure.partition_heads.tail + values(tail) + 1

-- name: PartitionQueue
-- Third: instances that are not the head of their partition wait for it.
insert into perdure.partition_waiting (`key`, seq, id)
select h.`key`, h.tail - mine.k + mine.r, mine.id
from (
  select i.id, i.partition_key, row_number() over (partition by i.partition_key order by o.ord) as r, count(*) over (partition by i.partition_key) as k
  from json_table(?1, '$[*]' columns (ord for ordinality, id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.instances i force index (primary) on i.id = o.id
  where i.partition_key is not null
) mine
straight_join perdure.partition_heads h force index (primary) on h.`key` = mine.partition_key
where h.head <> mine.id

-- name: InstanceReady
-- Last: instances that may run.
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
left join perdure.partition_heads h on h.`key` = i.partition_key
where i.partition_key is null or h.head = i.id

-- name: InstanceClaim
-- Claims due rows of one queue under one lease: the most urgent first, then the oldest.
-- Suspects are claimed by InstanceSuspectClaim.
select json_arrayagg(json_array(claimed.priority, claimed.due_at, claimed.id)) into @perdure_claim
from (
  select due.priority, due.due_at, due.id
  from (
    (
      select w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?1 and w.suspect = ?6 and w.priority = -1 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and not {paused lane ?1 ?2}{openable Instance w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
    union all
    (
      select w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?1 and w.suspect = ?6 and w.priority = 0 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and not {paused lane ?1 ?2}{openable Instance w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
    union all
    (
      select w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?1 and w.suspect = ?6 and w.priority = 1 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and not {paused lane ?1 ?2}{openable Instance w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
  ) due
  order by due.priority, due.due_at, due.id
  limit ?3
) claimed
;
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?7 microsecond, json_arrayagg(held.id)
from json_table(@perdure_claim, '$[*]' columns (id varchar(36) collate {collation} path '$[2]')) held
having count(*) > 0
;
delete r
from json_table(@perdure_claim, '$[*]' columns (priority smallint path '$[0]', due_at datetime(6) path '$[1]', id varchar(36) collate {collation} path '$[2]')) held
straight_join perdure.ready r force index (primary)
  on r.queue = ?1 and r.suspect = ?6 and r.priority = held.priority and r.due_at = held.due_at and r.id = held.id
;
select i.id, i.fsm, i.version, i.step, i.state, i.attempt, least(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace, i.awaited, i.rerun, i.wait, i.cancel_reason,
  {paused fsm i.fsm ?2}
from json_table(@perdure_claim, '$[*]' columns (id varchar(36) collate {collation} path '$[2]')) held
straight_join perdure.instances i force index (primary) on i.id = held.id

-- name: InstanceSuspectList
-- Returns the due suspects that may run, in the order in which they run. Suspects with a
-- large batch limit come first: they are the least suspicious.
select r.id, (select coalesce(i.batch_limit, 1) from perdure.instances i where i.id = r.id) as size
from perdure.ready r force index (primary)
where r.queue = ?1 and r.suspect = 1 and r.priority in (-1, 0, 1) and r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
  and greatest((select coalesce(i.batch_limit, 1) from perdure.instances i where i.id = r.id), 1) >= ?3 and not {paused lane ?1 ?2}{openable Instance r.id}
order by size desc, r.priority, r.due_at, r.id
limit ?4
for update skip locked

-- name: InstanceSuspectClaim
-- InstanceClaim for chosen suspects, which are locked.
select json_arrayagg(json_array(claimed.priority, claimed.due_at, claimed.id)) into @perdure_claim
from (
  select r.priority, r.due_at, r.id
  from perdure.ready r force index (primary)
  where r.queue = ?1 and r.suspect = 1 and r.priority in (-1, 0, 1) and r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
    and r.id in (select chosen.id from json_table(?8, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen)
  limit ?3
  for update skip locked
) claimed
;
{rest}

-- name: FinishedStatus
select status
from perdure.finished
where id = ?1
lock in share mode

-- name: SignalInsert
-- The target is locked, so no other transaction adds keys for it.
select count(*) into @perdure_known
from perdure.signal_keys
where target_id = ?1 and name = ?2 and dedup_key = ?4
lock in share mode
;
insert into perdure.signal_keys (target_id, name, dedup_key)
select ?1, ?2, ?4
from dual
where ?4 is not null and @perdure_known = 0
;
insert into perdure.signals (target_id, name, payload, created_at)
select ?1, ?2, ?3, coalesce(cast(?5 as datetime(6)), utc_timestamp(6))
from dual
where @perdure_known = 0

-- name: SignalWake
-- A duplicate does not wake the instance: the original signal was seen, or woke it before.
-- The signals are not locked: an outcome removes them before it locks the instance.
select json_arrayagg(hit.id) into @perdure_woken
from (
  select w.id
  from perdure.waiting w
  straight_join perdure.instances i force index (primary) on i.id = w.id
  where w.id = ?1 and ?2 in (select n.name from json_table(w.names, '$[*]' columns (name varchar(128) collate {collation} path '$')) n) and (
    select 1
    from perdure.signals s
    where s.target_id = w.id and s.name = ?2 and (i.seen is null or not json_contains(i.seen, cast(s.seq as char)))
    limit 1
  ) is not null
  lock in share mode
) hit
;
delete w
from json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.waiting w force index (primary) on w.id = o.id
;
update json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.due_at = coalesce(cast(?3 as datetime(6)), utc_timestamp(6)), i.timed_out = 0
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
select i.queue
from json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: SignalInbox
select s.seq, s.target_id, s.name, s.payload, s.created_at, s.received
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.signals s force index (signals_target_idx) on s.target_id = o.id
order by s.target_id, s.seq
