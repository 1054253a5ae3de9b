-- Instances can wait in a lane of their queue, see ADR 21. The view shows the queue.

-- The instances of state machines, live and finished.
create or replace view perdure.v1_instances as
select
  -- uuid. The id.
  i.id,
  -- text. The state machine.
  i.fsm as machine,
  -- integer. The version of the state machine.
  i.version,
  -- text. The current step, or the last one.
  i.step,
  -- text. The status: scheduled, ready, retrying, running, waiting, no_worker, done, stopped, failed, cancelled or quarantined.
  coalesce(f.status, case
    when (select true from perdure.ready r where r.queue = i.queue and r.suspect = false and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      or (select true from perdure.ready r where r.queue = i.queue and r.suspect = true and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      then case when least(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > now() then 'scheduled' else 'ready' end
    when (select true from perdure.waiting w where w.id = i.id limit 1) then 'waiting'
    when (select true from perdure.barriers b where b.parent_id = i.id limit 1) then 'waiting'
    when (select true from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id limit 1) then 'no_worker'
    when (select true from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id limit 1) then 'waiting'
    else 'running'
  end) as status,
  -- text. The queue.
  split_part(i.queue, chr(31), 1) as queue,
  -- smallint. The priority: -1 high, 0 normal, 1 low.
  i.priority,
  -- json. The state.
  coalesce(f.state, i.state) as state,
  -- json?. The result of a finished instance.
  f.result,
  -- text?. The last error.
  coalesce(f.error, i.error) as error,
  -- integer. The failed attempts of the current step.
  least(i.failures, i.attempt) as failures,
  -- integer. The crashes of processes that ran it.
  i.crashes,
  -- uuid?. The parent, if the instance is a child.
  i.parent_id,
  -- text?. The partition key.
  i.partition_key,
  -- text?. The unique key.
  i.unique_key,
  -- timestamptz. The time when the current step is or was due.
  i.due_at,
  -- timestamptz?. The deadline of the instance.
  i.deadline_at,
  -- timestamptz. The time of the start.
  i.created_at,
  -- timestamptz?. The time when it finished.
  f.finished_at
from perdure.instances i
left join perdure.finished f on f.id = i.id;
