-- The server's lists, on SQLite. Each statement scans an index from the end of the
-- previous page, and reads no more than its limit.

-- name: InspectExecuting
-- Few rows: as many as processes run concurrently.
select distinct held.value
from perdure.leases l, json_each(l.ids) held
where instr(l.queue, char(9)) = 0 and held.value < ?
order by 1 desc
limit ?

-- name: InspectReadyGroup
-- Returns the next queue and priority that has instances: before, between or after the
-- lanes of alarms and hooks. SQLite seeks only by the first column of a comparison of
-- rows, so each case has its own comparison.
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

-- name: InspectStatus
-- Returns the columns that filters use, without the state. The program adds the ids.
select i.id, i.fsm, i.queue, i.step, i.parent_id, coalesce(f.status, case
    when exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect in (0, 1) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
      then case when min(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > ? then 'scheduled' else 'ready' end
    when exists (select 1 from perdure.waiting w where w.id = i.id) then 'waiting_signal'
    when exists (select 1 from perdure.barriers b where b.parent_id = i.id) then 'waiting_children'
    when exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id) then case when {parked i.fsm} then 'ready' else 'no_worker' end
    when exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id) then 'waiting_turn'
    else 'running'
  end)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: InspectWait
-- Returns what an instance waits for: signals by name, or children.
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
