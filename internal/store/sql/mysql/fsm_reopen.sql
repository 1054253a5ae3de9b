-- Cancelling instances that have a cancel step, and reopening the children of retried
-- instances, on MySQL.

-- name: TreeClosed
-- Returns the children that finished because their parent did, in the order of the passes.
select c.seq, c.id, c.parent_fanout, c.ordinal
from (
{each ?1}
  (
    select t.seq, i.id, i.parent_fanout, i.ordinal
    from perdure.tree_ends t
    straight_join perdure.instances i force index (instances_parent_idx) on i.parent_id = t.parent_id
    where t.seq = ?1
      and i.parent_fanout >= coalesce(t.after_fanout, -2147483647)
      and (i.parent_fanout > coalesce(t.after_fanout, -2147483647) or i.ordinal > coalesce(t.after_ordinal, -1))
      and abs(i.parent_fanout) between t.first_fanout and t.last_fanout
      and (select f.ended_by from perdure.finished f where f.id = i.id) = t.parent_id
    order by i.parent_fanout, i.ordinal
    limit ?2
  )
{end}
) c
order by c.seq, c.parent_fanout, c.ordinal
limit ?2

-- name: FinishedOwn
-- Keeps instances finished: a retry of their parent does not reopen them.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.finished f force index (primary) on f.id = o.id
set f.ended_by = null

-- name: BarrierRecount
-- Counts the unfinished children of barriers that are not counted yet. The barriers are
-- locked before, by a separate statement. A child that finishes later waits for the lock,
-- and this statement sees every child that finished before. Children are read first: the
-- update would lock them.
select json_arrayagg(json_array(b.parent_id, (
  select count(*)
  from perdure.instances i
  left join perdure.finished f on f.id = i.id
  where i.parent_id = b.parent_id and i.parent_fanout = b.fanout and f.id is null
))) into @perdure_counted
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
where b.pending > 500000000
;
update json_table(@perdure_counted, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', live int path '$[1]')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
set b.pending = o.live

-- name: InstanceReset
-- Undoes the end of an instance. Its attempts are reset, and it gets the rest of its
-- deadline. A parent that has counted its end does not count it again. Such a parent still
-- finds the instance by the negative number of the fan-out.
update json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.finished f force index (primary) on f.id = o.id
straight_join perdure.instances i force index (primary) on i.id = f.id
set i.attempt = 0, i.failures = 0, i.crashes = 0, i.batch_limit = null, i.parent_fanout = case when f.ended_by is null then 0 - abs(i.parent_fanout) else i.parent_fanout end,
  i.deadline_at = case when i.deadline_at > f.finished_at then coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) + interval timestampdiff(microsecond, f.finished_at, i.deadline_at) microsecond end,
  i.due_at = greatest(i.due_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)))

-- name: DeadlineEnter
insert into perdure.deadlines (at, id)
select i.deadline_at, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
where i.deadline_at is not null

-- name: FinishedRevive
delete f
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.finished f force index (primary) on f.id = o.id

-- name: InstanceCompensate
-- The instance continues with its cancel step and its current state. It waits for nothing,
-- and no longer has a deadline.
update json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', step varchar(128) path '$[1]', reason longtext path '$[2]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.step = o.step, i.cancel_reason = o.reason, i.attempt = 0, i.failures = 0, i.crashes = 0, i.batch_limit = null, i.awaits = null, i.keeps = 0, i.seen = null,
  i.timed_out = 0, i.dropped = null, i.rerun = 0, i.wait = null, i.error = null, i.deadline_at = null, i.due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))

-- name: CancelLease
-- A step of the instance is still running. This lease holds the instance until the process
-- that runs the step has finished it, or has crashed.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select o.token, concat('cancel:', o.token), o.queue, 0, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)), coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) + interval ?1 microsecond, json_array(o.id)
from json_table(?2, '$[*]' columns (token varchar(36) path '$[0]', queue varchar(300) path '$[1]', id varchar(36) path '$[2]')) o

-- name: CancelLeaseTake
-- Returns the leases that hold instances for their cancel step. They are found before they
-- are locked, so that no other lease is locked.
select json_unquote(json_extract(l.ids, '$[0]')), l.token
from (
  select x.token
  from perdure.leases x
  straight_join json_table(x.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
  straight_join json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o on o.id = held.id
  left join perdure.interrupts taken on taken.token = x.token and taken.id = held.id
  where x.worker like 'cancel:%' and x.worker = concat('cancel:', x.token) and taken.id is null
  order by x.token
  limit 1000000000
) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token
for update

-- name: PartitionQueued
select p.id
from json_table(?1, '$[*]' columns (name varchar(512) collate {collation} path '$[0]', id varchar(36) collate {collation} path '$[1]')) o
straight_join perdure.partition_waiting p force index (partition_waiting_id_key) on p.id = o.id
where p.`key` = o.name
