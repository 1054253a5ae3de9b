-- Reads of instances, and commands that finish them, on MySQL. Subqueries for single rows
-- use a limit: MariaDB turns exists into a full scan. Reads of locked instances lock too:
-- at the isolation level repeatable read, which a user's transaction may have, only locking
-- reads see the current row.

-- name: InstanceGet
select i.id, i.fsm, i.version, i.step, i.state, i.attempt, least(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace, i.awaited, i.rerun, i.wait, i.cancel_reason
from perdure.instances i
where i.id = ?1
lock in share mode

-- name: InstanceShow
select i.id, i.fsm, i.version, i.step, coalesce(f.state, i.state), i.queue, i.priority, i.attempt, least(i.failures, i.attempt), i.crashes, i.parent_id, i.partition_key, i.unique_key,
  coalesce(f.error, i.error), i.created_at, i.due_at, i.deadline_at, f.finished_at, f.result, coalesce(f.status, case
    when (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = 0 and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1) is not null
      or (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = 1 and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1) is not null
      then case when least(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > coalesce(cast(? as datetime(6)), utc_timestamp(6)) then 'scheduled' else 'ready' end
    when (select 1 from perdure.waiting w where w.id = i.id limit 1) is not null then 'waiting_signal'
    when (select 1 from perdure.barriers b where b.parent_id = i.id limit 1) is not null then 'waiting_children'
    when (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id limit 1) is not null then case when {parked i.fsm} then 'ready' else 'no_worker' end
    when (select 1 from perdure.partition_heads h where h.`key` = i.partition_key and h.head <> i.id limit 1) is not null then 'waiting_turn'
    else 'running'
  end),
  (select count(*) from perdure.signals s where s.target_id = i.id and s.received = 0), i.cancel_reason,
  (select d.cancel_step from perdure.definitions d where d.fsm = i.fsm and d.version = i.version limit 1)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: ReadyRemove
delete r
from perdure.instances i
straight_join (select 0 as suspect union all select 1) s
straight_join perdure.ready r force index (primary) on r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
where i.id = ?1

-- name: InstanceHasten
-- Makes an instance, which is locked, due now if it waits for its due time or for a worker.
select least(i.due_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6))) into @perdure_due
from perdure.instances i
where i.id = ?2
lock in share mode
;
update perdure.instances i
straight_join (select 0 as suspect union all select 1) s
straight_join perdure.ready r force index (primary) on r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
set r.due_at = cast(@perdure_due as datetime(6))
where i.id = ?2
;
update perdure.instances i
straight_join (select 0 as suspect union all select 1) s
straight_join perdure.ready r force index (primary) on r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = cast(@perdure_due as datetime(6)) and r.id = i.id
set i.due_at = cast(@perdure_due as datetime(6))
where i.id = ?2
;
select i.queue
from perdure.instances i
straight_join (select 0 as suspect union all select 1) s
straight_join perdure.ready r force index (primary) on r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
where i.id = ?2
lock in share mode

-- name: WaitingRemove
-- The instance, which is locked, records what it waited for, and the rest of its wait.
select timestampdiff(microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), w.deadline_at) into @perdure_left
from (select 1) one
left join perdure.waiting w on w.id = ?1
;
update perdure.instances i
straight_join perdure.waiting w force index (primary) on w.id = i.id
set i.wait = concat('{"for":"signals","left":', coalesce(@perdure_left, 'null'), '}')
where i.id = ?1
;
delete from perdure.waiting
where id = ?1

-- name: BarrierRemove
update perdure.barriers b
straight_join perdure.instances i force index (primary) on i.id = b.parent_id
set i.wait = concat('{"for":"children","until":', b.until, ',"rest":', case when b.cancel_rest = 1 then 'true' else 'false' end,
  ',"left":', coalesce(timestampdiff(microsecond, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), b.deadline_at), 'null'), '}')
where b.parent_id = ?1
;
delete from perdure.barriers
where parent_id = ?1

-- name: WaitClear
-- Also takes the lock that the delivery of signals takes.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.wait = null

-- name: UnroutedRemove
delete u
from perdure.instances i
straight_join perdure.unrouted u force index (primary) on u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id
where i.id = ?1

-- name: PartitionRemove
delete from perdure.partition_waiting
where id = ?1

-- name: InstancesOver
-- Children of an unfinished parent are kept: the parent may still read them. The rows are
-- found before they are locked, as in fsm_sweep.sql.
select f.id
from (
  select x.id
  from perdure.finished x force index (finished_at_idx)
  where x.dead = 0 and x.finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond and (
    select 1
    from perdure.instances i
    straight_join perdure.instances p force index (primary) on p.id = i.parent_id
    left join perdure.finished e on e.id = p.id
    where i.id = x.id and e.id is null
    limit 1
  ) is null
  order by x.finished_at
  limit 10000
) o
straight_join perdure.finished f force index (primary) on f.id = o.id
where f.dead = 0 and f.finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
limit ?3
for update skip locked

-- name: InstancesDead
select f.id
from (
  select x.id
  from perdure.finished x force index (finished_at_idx)
  where x.dead = 1 and x.finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond and (
    select 1
    from perdure.instances i
    straight_join perdure.instances p force index (primary) on p.id = i.parent_id
    left join perdure.finished e on e.id = p.id
    where i.id = x.id and e.id is null
    limit 1
  ) is null
  order by x.finished_at
  limit 10000
) o
straight_join perdure.finished f force index (primary) on f.id = o.id
where f.dead = 1 and f.finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
limit ?3
for update skip locked

-- name: InstanceFinished
select f.status, coalesce(i.parent_id, ''),
  (select 1 from perdure.instances p where p.id = i.parent_id) is not null and (select 1 from perdure.finished e where e.id = i.parent_id) is null
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.id = ?1
lock in share mode

-- name: InstanceDelete
delete j
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.journal j force index (primary) on j.instance_id = o.id
;
delete k
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.signal_keys k force index (primary) on k.target_id = o.id
;
delete s
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.signals s force index (signals_target_idx) on s.target_id = o.id
;
delete t
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.transitions t force index (primary) on t.instance_id = o.id
;
delete a
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.attempts a force index (primary) on a.kind = 'instance' and a.id = o.id and a.actor_type = '' and a.actor_id = ''
;
delete u
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
straight_join perdure.uniques u force index (primary) on u.name = i.unique_name and u.`key` = i.unique_key and u.id = i.id
;
delete i
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
;
delete f
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.finished f force index (primary) on f.id = o.id
