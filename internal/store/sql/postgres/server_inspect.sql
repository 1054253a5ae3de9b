-- The server's lists, on PostgreSQL. Each statement scans an index from the end of the
-- previous page, and reads no more than its limit. The columns in "order by" are
-- qualified with their table: an unqualified name would be the selected text.

-- name: InspectExecuting
-- Few rows: as many as processes run concurrently.
select distinct held.id::text
from perdure.leases l
cross join unnest(l.ids) as held (id)
where strpos(l.queue, chr(9)) = 0 and held.id < ?::uuid
order by 1 desc
limit ?

-- name: InspectReadyGroup
-- Returns the next queue and priority that has instances. Lanes of other kinds may lie
-- between the queues; they are skipped one by one.
with recursive found (queue, suspect, priority) as (
  (
    select r.queue, r.suspect, r.priority
    from perdure.ready r
    where (r.queue, r.suspect, r.priority) > (?, ?::boolean, ?)
    order by r.queue, r.suspect, r.priority
    limit 1
  )
  union all
  select n.queue, n.suspect, n.priority
  from found f
  cross join lateral (
    select r.queue, r.suspect, r.priority
    from perdure.ready r
    where r.queue > f.queue
    order by r.queue, r.suspect, r.priority
    limit 1
  ) n
  where strpos(f.queue, chr(9)) > 0
)
select queue, suspect, priority
from found
where strpos(queue, chr(9)) = 0
limit 1

-- name: InspectStatus
-- A limit replaces exists: the planner would read the whole table for a list. Returns
-- the columns that filters use, without the state. The program adds the ids.
select i.id::text, i.fsm, i.queue, i.step, i.parent_id::text, coalesce(f.status, case
    when (select true from perdure.ready r where r.queue = i.queue and r.suspect = false and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      or (select true from perdure.ready r where r.queue = i.queue and r.suspect = true and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      then case when least(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > coalesce(?::timestamptz, now()) then 'scheduled' else 'ready' end
    when (select true from perdure.waiting w where w.id = i.id limit 1) then 'waiting_signal'
    when (select true from perdure.barriers b where b.parent_id = i.id limit 1) then 'waiting_children'
    when (select true from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id limit 1) then case when {parked i.fsm} then 'ready' else 'no_worker' end
    when (select true from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id limit 1) then 'waiting_turn'
    else 'running'
  end)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: InspectWait
-- Returns what an instance waits for: signals by name, or children.
select array_to_json(w.names)::text, w.deadline_at, 0, 0
from perdure.waiting w
where w.id = $1::uuid
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
where b.parent_id = $1::uuid

-- name: InspectTasks
select scheduled_at, task_id, task_type, status, attempts
from queues.task
where task_id < ?
order by task_id desc
limit ?

-- name: InspectDeadTasks
select scheduled_at, task_id, task_type, status, attempts
from queues.task
where status in ('failed', 'quarantined') and task_id < ?
order by task_id desc
limit ?

-- name: InspectRunningTasks
select scheduled_at, task_id, task_type, status, attempts
from queues.task
where status = 'processing' and task_id < ?
order by task_id desc
limit ?

-- name: InspectWaitingTasks
select scheduled_at, task_id, task_type, status, attempts
from queues.task
where status = 'pending' and task_type = ? and (scheduled_at, task_id) > (?, ?)
order by scheduled_at, task_id
limit ?
