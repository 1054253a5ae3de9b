-- Signals, on MySQL. A unit may be a transaction that its user began, with the isolation
-- level repeatable read: what was committed before the lock of the target is then seen only
-- by reads that lock.

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
-- A duplicate does not wake: what it repeats was seen, or has woken before. The signals are
-- not locked: an outcome removes them before it locks the instance.
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
