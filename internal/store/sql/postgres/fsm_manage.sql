-- Reads of instances, and commands that finish them, on PostgreSQL.

-- name: InstanceGet
select i.id::text, i.fsm, i.version, i.step, i.state::text, i.attempt, least(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id::text, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace, i.awaited, i.rerun, i.wait, i.cancel_reason
from perdure.instances i
where i.id = ?::uuid

-- name: InstanceShow
-- A limit replaces exists: the planner would read the whole table for a list.
select i.id::text, i.fsm, i.version, i.step, coalesce(f.state, i.state)::text, i.queue, i.priority, i.attempt, least(i.failures, i.attempt), i.crashes, i.parent_id::text, i.partition_key, i.unique_key,
  coalesce(f.error, i.error), i.created_at, i.due_at, i.deadline_at, f.finished_at, f.result::text, coalesce(f.status, case
    when (select true from perdure.ready r where r.queue = i.queue and r.suspect = false and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      or (select true from perdure.ready r where r.queue = i.queue and r.suspect = true and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      then case when least(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > coalesce(?::timestamptz, now()) then 'scheduled' else 'ready' end
    when (select true from perdure.waiting w where w.id = i.id limit 1) then 'waiting_signal'
    when (select true from perdure.barriers b where b.parent_id = i.id limit 1) then 'waiting_children'
    when (select true from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id limit 1) then case when {parked i.fsm} then 'ready' else 'no_worker' end
    when (select true from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id limit 1) then 'waiting_turn'
    else 'running'
  end),
  (select count(*) from perdure.signals s where s.target_id = i.id and not s.received), i.cancel_reason,
  (select d.cancel_step from perdure.definitions d where d.fsm = i.fsm and d.version = i.version limit 1)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: LeaseOf
select token::text
from perdure.leases
where ?::uuid = any(ids)
order by seq desc
limit 1

-- name: ReadyRemove
delete from perdure.ready r
using perdure.instances i, (values (false), (true)) as s (suspect)
where i.id = ?::uuid and r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id

-- name: InstanceHasten
-- Makes an instance due now if it waits for its due time or for a worker.
with due as (
  select coalesce(?::timestamptz, now()) as now
), hastened as (
  update perdure.ready r
  set due_at = least(r.due_at, due.now)
  from due, perdure.instances i, (values (false), (true)) as s (suspect)
  where i.id = ?::uuid and r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
  returning r.id, r.due_at
)
update perdure.instances i
set due_at = h.due_at
from hastened h
where i.id = h.id
returning i.queue

-- name: WaitingRemove
-- The instance records what it waited for, and the rest of its wait.
with gone as (
  delete from perdure.waiting
  where id = ?::uuid
  returning id, deadline_at
)
update perdure.instances i
set wait = json_build_object('for', 'signals', 'left', (extract(epoch from gone.deadline_at - coalesce(?::timestamptz, now())) * 1000000)::bigint)
from gone
where i.id = gone.id

-- name: BarrierRemove
with gone as (
  delete from perdure.barriers
  where parent_id = ?::uuid
  returning parent_id, until, deadline_at, cancel_rest
)
update perdure.instances i
set wait = json_build_object('for', 'children', 'until', gone.until, 'rest', gone.cancel_rest,
  'left', (extract(epoch from gone.deadline_at - coalesce(?::timestamptz, now())) * 1000000)::bigint)
from gone
where i.id = gone.parent_id

-- name: UnroutedRemove
delete from perdure.unrouted u
using perdure.instances i
where i.id = ?::uuid and u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id

-- name: PartitionRemove
delete from perdure.partition_waiting p
using perdure.instances i
where i.id = ?::uuid and p.key = i.partition_key and p.id = i.id

-- name: InstanceDelete
with keys as (
  delete from perdure.signal_keys
  where target_id = any($1::uuid[])
), signals as (
  delete from perdure.signals
  where target_id = any($1::uuid[])
), transitions as (
  delete from perdure.transitions
  where instance_id = any($1::uuid[])
), journal as (
  delete from perdure.journal j
  using unnest($1::uuid[]) as o (id)
  where j.instance_id = o.id
), attempts as (
  delete from perdure.attempts
  where kind = 'instance' and id = any($1::text[])
), uniques as (
  delete from perdure.uniques u
  using perdure.instances i
  where i.id = any($1::uuid[]) and u.name = i.unique_name and u.key = i.unique_key and u.id = i.id
), instances as (
  delete from perdure.instances
  where id = any($1::uuid[])
)
delete from perdure.finished
where id = any($1::uuid[])
