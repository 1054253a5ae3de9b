-- Work that becomes due outside the ready rows, on MySQL. Every statement has a limit and
-- skips rows that other transactions have locked. Rows are found by their times before
-- they are locked by their keys. A locking scan of an index also locks the first row that
-- is not due.

-- name: InstanceHeld
-- Returns the instances of a process's leases that are in no other place: the leases hold
-- them. An instance that is not the head of its partition is in the partition's queue.
-- Joins find a row by its key; MariaDB turns a subquery into a full scan.
select l.token, l.alone, i.id, i.crashes, coalesce(i.batch_limit, 1), i.id, i.fsm
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join perdure.instances i force index (primary) on i.id = held.id
left join perdure.finished f on f.id = i.id
left join perdure.ready r on r.queue = i.queue and r.suspect = 0 and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
left join perdure.ready s on s.queue = i.queue and s.suspect = 1 and s.priority = i.priority and s.due_at = i.due_at and s.id = i.id
left join perdure.waiting w on w.id = i.id
left join perdure.barriers b on b.parent_id = i.id
left join perdure.unrouted u on u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step = '' and u.id = i.id
left join perdure.unrouted v on v.queue = i.queue and v.fsm = i.fsm and v.version = i.version and v.step = i.step and v.id = i.id
left join perdure.partition_heads h on h.`key` = i.partition_key and h.head <> i.id
where l.worker = ?1 and f.id is null and r.id is null and s.id is null and w.id is null and b.parent_id is null and u.id is null and v.id is null and h.`key` is null
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and locate(i.id, newer.ids) > 0)

-- name: InstanceReturn
-- Returns the claims of a crashed process to the queue. Suspects have a batch limit.
update json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', crashes int path '$[1]', delay bigint path '$[2]', batch_limit int path '$[3]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.crashes = o.crashes, i.batch_limit = o.batch_limit, i.error = ?1, i.due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select i.queue, case when i.batch_limit is null then 0 else 1 end, i.priority, i.due_at, i.id
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
select i.queue
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: InstanceRelease
-- Returns unstarted claims to the queue unchanged.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select i.queue, case when i.batch_limit is null then 0 else 1 end, i.priority, i.due_at, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: WaitingExpired
-- Locks only the instances, as the delivery of a signal does.
select i.id
from (
  select w.id, w.deadline_at
  from perdure.waiting w force index (waiting_deadline_idx)
  where w.deadline_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
  order by w.deadline_at
  limit 10000
) o
straight_join perdure.instances i force index (primary) on i.id = o.id
limit ?2
for update skip locked

-- name: WaitingTimeout
select json_arrayagg(w.id) into @perdure_woken
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.waiting w force index (primary) on w.id = o.id
where w.deadline_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
;
delete w
from json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.waiting w force index (primary) on w.id = o.id
;
update json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.due_at = coalesce(cast(?3 as datetime(6)), utc_timestamp(6)), i.timed_out = 1
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
select i.queue
from json_table(@perdure_woken, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: BarrierTimeout
-- A parent that is locked, for example by a unit that sends it a signal, is left for
-- later.
select json_arrayagg(gone.parent_id) into @perdure_gone
from (
  select b.parent_id
  from (
    select x.parent_id
    from perdure.barriers x force index (barriers_deadline_idx)
    where x.deadline_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
    order by x.deadline_at
    limit 10000
  ) o
  straight_join perdure.barriers b force index (primary) on b.parent_id = o.parent_id
  straight_join perdure.instances i force index (primary) on i.id = b.parent_id
  where b.deadline_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
  limit ?2
  for update skip locked
) gone
;
insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select b.parent_id, b.fanout, b.fanout, 'cancel', b.parent_id, 'the wait for the children has timed out', coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
where b.cancel_rest = 1 and b.pending > 0
on duplicate key update seq = perdure.tree_ends.seq
;
delete b
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.barriers b force index (primary) on b.parent_id = o.id
;
update json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), i.timed_out = 1
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
select i.queue
from json_table(@perdure_gone, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: InstanceUnroute
-- The process that claimed the instance does not know the definition, or not this step of
-- it. The instance is parked until a process serves it.
insert into perdure.unrouted (queue, fsm, version, step, id)
select i.queue, i.fsm, i.version, case when o.known = 1 then i.step else '' end, i.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', known tinyint path '$[1]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: InstanceReroute
select json_arrayagg(json_array(known.fsm, known.version, known.step, known.id)) into @perdure_rerouted
from (
  select u.fsm, u.version, u.step, u.id
  from json_table(?1, '$[*]' columns (fsm varchar(128) collate {collation} path '$[0]', version int path '$[1]', step varchar(128) collate {collation} path '$[2]')) mine
  straight_join perdure.unrouted u force index (primary) on u.queue = ?2 and u.fsm = mine.fsm and u.version = mine.version and u.step = mine.step
  straight_join perdure.instances i force index (primary) on i.id = u.id
  where not {paused fsm mine.fsm ?4}
  limit ?3
  for update skip locked
) known
;
delete u
from json_table(@perdure_rerouted, '$[*]' columns (fsm varchar(128) collate {collation} path '$[0]', version int path '$[1]', step varchar(128) collate {collation} path '$[2]', id varchar(36) collate {collation} path '$[3]')) o
straight_join perdure.unrouted u force index (primary) on u.queue = ?2 and u.fsm = o.fsm and u.version = o.version and u.step = o.step and u.id = o.id
;
update json_table(@perdure_rerouted, '$[*]' columns (id varchar(36) collate {collation} path '$[3]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.due_at = coalesce(cast(?4 as datetime(6)), utc_timestamp(6))
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select i.queue, case when i.batch_limit is null then 0 else 1 end, i.priority, i.due_at, i.id
from json_table(@perdure_rerouted, '$[*]' columns (id varchar(36) collate {collation} path '$[3]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
select i.queue
from json_table(@perdure_rerouted, '$[*]' columns (id varchar(36) collate {collation} path '$[3]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id

-- name: InstanceNextWake
-- Returns the microseconds until work of a queue is due.
select timestampdiff(microsecond, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), min(wakes.at))
from (
  select (
    select w.due_at
    from perdure.ready w force index (primary)
    where w.queue = ?2 and w.suspect = level.suspect and w.priority = level.priority and (w.suspect = 0 or ?4 = 1){openable Instance w.id}
    order by w.due_at, w.id
    limit 1
  ) as at
  from (
    select 0 as suspect, -1 as priority union all select 0, 0 union all select 0, 1 union all select 1, -1 union all select 1, 0 union all select 1, 1
  ) level
  where not {paused lane ?2 ?1}
  union all
  select min(r.due_at)
  from perdure.ready r force index (primary)
  straight_join perdure.instances i force index (primary) on i.id = r.id
  where ?4 > 1 and r.queue = ?2 and r.suspect = 1 and r.priority in (-1, 0, 1) and i.batch_limit >= ?4 and not {paused lane r.queue ?1}{openable Instance r.id}
  union all
  (
    select coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
    from json_table(?3, '$[*]' columns (fsm varchar(128) collate {collation} path '$[0]', version int path '$[1]', step varchar(128) collate {collation} path '$[2]')) mine
    straight_join perdure.unrouted u force index (primary) on u.queue = ?2 and u.fsm = mine.fsm and u.version = mine.version and u.step = mine.step
    where not {paused fsm mine.fsm ?1}
    limit 1
  )
  union all
  select min(expires_at) from perdure.leases where queue = ?2
  union all
  select min(deadline_at) from perdure.waiting
  union all
  select min(deadline_at) from perdure.barriers
  union all
  select min(at) from perdure.deadlines
  union all
  select min(due_at) from perdure.tree_ends
  union all
  select min(until_at) from perdure.pauses where until_at > coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
) wakes
having min(wakes.at) is not null

-- name: InstanceSuspectDue
select 1
from perdure.ready r force index (primary)
where r.queue = ?1 and r.suspect = 1 and r.priority in (-1, 0, 1) and r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
limit 1
