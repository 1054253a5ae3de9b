-- What the server looks at, on SQLite: each statement walks along an index,
-- from a position that the last page ended at, and never further than its limit.

-- name: InspectInstances
select t.id
from perdure.instances t
where t.id < ?
order by t.id desc
limit ?

-- name: InspectInstancesOf
select t.id
from perdure.instances t
where t.fsm = ? and t.id < ?
order by t.id desc
limit ?

-- name: InspectEnded
select t.id
from perdure.finished t
where t.id < ?
order by t.id desc
limit ?

-- name: InspectDone
select t.id
from perdure.finished t
where t.id < ? and t.status = 'done'
order by t.id desc
limit ?

-- name: InspectDead
select t.id
from perdure.finished t
where t.status in ('failed', 'quarantined') and t.id < ?
order by t.id desc
limit ?

-- name: InspectCancelled
select t.id
from perdure.finished t
where t.status = 'cancelled' and t.id < ?
order by t.id desc
limit ?

-- name: InspectStopped
select t.id
from perdure.finished t
where t.status = 'stopped' and t.id < ?
order by t.id desc
limit ?

-- name: InspectWaiting
select t.id
from perdure.waiting t
where t.id < ?
order by t.id desc
limit ?

-- name: InspectBarriers
select t.parent_id
from perdure.barriers t
where t.parent_id < ?
order by t.parent_id desc
limit ?

-- name: InspectExecuting
-- Few: as many as processes run at once.
select distinct held.value
from perdure.leases l, json_each(l.ids) held
where instr(l.queue, char(9)) = 0 and held.value < ?
order by 1 desc
limit ?

-- name: InspectUnrouted
-- By the id, too: only a few machines have no process.
select t.id
from perdure.unrouted t
where t.id < ?
order by t.id desc
limit ?

-- name: InspectQueued
select key, seq, id
from perdure.partition_waiting
where (key, seq) > (?, ?)
order by key, seq
limit ?

-- name: InspectUnique
select u.id
from perdure.uniques u
where u.key = ? and u.name in (select d.fsm from perdure.definitions d union select '')
order by u.id desc
limit ?

-- name: InspectReadyGroup
-- The next queue and urgency that has instances: before, between or after the lanes of
-- alarms and hooks.
-- SQLite seeks by the first column of a comparison of rows only, hence one for each case.
select queue, suspect, priority
from (
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect = ?2 and priority > ?3 order by priority limit 1)
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect > ?2 order by suspect, priority limit 1)
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue > ?1 and queue < 'alarm' || char(9) order by queue, suspect, priority limit 1)
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue > max(?1, 'alarm' || char(10)) and queue < 'hook' || char(9) order by queue, suspect, priority limit 1)
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue > max(?1, 'hook' || char(10)) order by queue, suspect, priority limit 1)
)
order by queue, suspect, priority
limit 1

-- name: InspectReady
select t.due_at, t.id
from perdure.ready t
where queue = ? and suspect = ? and priority = ? and (t.due_at, t.id) > (?, ?) and t.due_at <= ?
order by t.due_at, t.id
limit ?

-- name: InspectSignals
select seq, name, payload, created_at, received
from perdure.signals
where target_id = ? and seq > ?
order by seq
limit ?

-- name: InspectStatus
-- What a filter goes by, without the state. The program adds the ids.
select i.id, i.fsm, i.queue, i.step, i.parent_id, coalesce(f.status, case
    when exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect in (0, 1) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
      then case when min(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > ? then 'scheduled' else 'ready' end
    when exists (select 1 from perdure.waiting w where w.id = i.id) then 'waiting_signal'
    when exists (select 1 from perdure.barriers b where b.parent_id = i.id) then 'waiting_children'
    when exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id) then 'no_worker'
    when exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id) then 'waiting_turn'
    else 'running'
  end)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: InspectWait
-- What an instance waits for: signals by name, or children.
select w.names, w.deadline_at, 0, 0
from perdure.waiting w
where w.id = ?1
union all
select null, b.deadline_at, case when b.pending <= 500000000 then b.pending else (
  select count(*)
  from perdure.instances c
  where c.parent_id = b.parent_id and c.parent_fanout = b.fanout
    and not exists (select 1 from perdure.finished f where f.id = c.id and f.ended_by is distinct from b.parent_id)
) end, (
  select count(*)
  from perdure.instances c
  where c.parent_id = b.parent_id and c.parent_fanout in (b.fanout, -b.fanout)
)
from perdure.barriers b
where b.parent_id = ?1

-- name: InspectTasks
select scheduled_at, task_id, task_type, status, attempts
from queues_task
where task_id < ?
order by task_id desc
limit ?

-- name: InspectDeadTasks
select scheduled_at, task_id, task_type, status, attempts
from queues_task
where status in ('failed', 'quarantined') and task_id < ?
order by task_id desc
limit ?

-- name: InspectRunningTasks
select scheduled_at, task_id, task_type, status, attempts
from queues_task indexed by queues_task_lease_idx
where status = 'processing' and task_id < ?
order by task_id desc
limit ?

-- name: InspectWaitingTasks
select scheduled_at, task_id, task_type, status, attempts
from queues_task
where status = 'pending' and task_type = ? and (scheduled_at, task_id) > (?, ?)
order by scheduled_at, task_id
limit ?
