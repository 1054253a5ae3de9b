-- Reads of instances, and commands that finish them, on SQLite.

-- name: InstanceGet
select i.id, i.fsm, i.version, i.step, i.state, i.attempt, min(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace, i.awaited, i.rerun, i.wait, i.cancel_reason
from perdure.instances i
where i.id = ?

-- name: InstanceShow
select i.id, i.fsm, i.version, i.step, coalesce(f.state, i.state), i.queue, i.priority, i.attempt, min(i.failures, i.attempt), i.crashes, i.parent_id, i.partition_key, i.unique_key,
  coalesce(f.error, i.error), i.created_at, i.due_at, i.deadline_at, f.finished_at, f.result, coalesce(f.status, case
    when exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect in (0, 1) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
      then case when min(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > ? then 'scheduled' else 'ready' end
    when exists (select 1 from perdure.waiting w where w.id = i.id) then 'waiting_signal'
    when exists (select 1 from perdure.barriers b where b.parent_id = i.id) then 'waiting_children'
    when exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id) then case when {parked i.fsm} then 'ready' else 'no_worker' end
    when exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id) then 'waiting_turn'
    else 'running'
  end),
  (select count(*) from perdure.signals s where s.target_id = i.id and not s.received), i.cancel_reason,
  (select d.cancel_step from perdure.definitions d where d.fsm = i.fsm and d.version = i.version)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: LeaseOf
select token
from perdure.leases
where ?1 in (select value from json_each(ids))
order by seq desc
limit 1

-- name: ReadyRemove
delete from perdure.ready
where suspect in (0, 1) and (queue, priority, due_at, id) in (select i.queue, i.priority, i.due_at, i.id from perdure.instances i where i.id = ?)

-- name: InstanceHasten
-- Makes an instance due now if it waits for its due time or for a worker.
update perdure.ready
set due_at = min(due_at, ?1)
where suspect in (0, 1) and (queue, priority, due_at, id) in (select i.queue, i.priority, i.due_at, i.id from perdure.instances i where i.id = ?2)
;
update perdure.instances
set due_at = min(due_at, ?1)
where id = ?2 and exists (
  select 1
  from perdure.ready r
  where r.queue = perdure.instances.queue and r.suspect in (0, 1) and r.priority = perdure.instances.priority and r.due_at = min(perdure.instances.due_at, ?1) and r.id = ?2
)
returning queue

-- name: WaitingRemove
-- The instance records what it waited for, and the rest of its wait.
update perdure.instances
set wait = json_object('for', 'signals', 'left', w.deadline_at - ?2)
from perdure.waiting w
where perdure.instances.id = ?1 and w.id = ?1
;
delete from perdure.waiting
where id = ?1

-- name: BarrierRemove
update perdure.instances
set wait = json_object('for', 'children', 'until', b.until, 'rest', json(iif(b.cancel_rest, 'true', 'false')), 'left', b.deadline_at - ?2)
from perdure.barriers b
where perdure.instances.id = ?1 and b.parent_id = ?1
;
delete from perdure.barriers
where parent_id = ?1

-- name: UnroutedRemove
delete from perdure.unrouted
where (queue, fsm, version, step, id) in (
  select i.queue, i.fsm, i.version, s.value, i.id
  from perdure.instances i, json_each(json_array('', i.step)) s
  where i.id = ?
)

-- name: PartitionRemove
delete from perdure.partition_waiting
where (key, id) in (select i.partition_key, i.id from perdure.instances i where i.id = ?)

-- name: InstanceDelete
delete from perdure.journal
where instance_id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.transitions
where instance_id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.signals
where target_id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.signal_keys
where target_id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.attempts
where kind = 'instance' and id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.uniques
where (name, key, id) in (select i.unique_name, i.unique_key, i.id from perdure.instances i where i.id in (select value->>0 from jsonb_each(?1)))
;
delete from perdure.instances
where id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.finished
where id in (select value->>0 from jsonb_each(?1))
