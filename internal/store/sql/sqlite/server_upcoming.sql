-- Due and upcoming work, on SQLite. Scheduled and ready work is indexed by the
-- queue, name or type that a process serves. The statements therefore read it group
-- by group.

-- name: UpcomingTaskGroup
select task_type
from queues_task
where status = 'pending' and task_type > ?
order by task_type
limit 1

-- name: UpcomingTasks
select t.scheduled_at, t.task_id, task_type, case when attempts > 0 then 'attempt ' || (attempts + 1) else 'first attempt' end
from queues_task t
where status = 'pending' and task_type = ? and t.scheduled_at > ? and t.scheduled_at <= ?
order by t.scheduled_at, t.task_id
limit ?

-- name: UpcomingSignalTimeouts
select w.deadline_at, i.id, i.fsm, 'wait for ' || (select group_concat(value, ', ') from json_each(w.names)) || ' ends'
from perdure.waiting w
join perdure.instances i on i.id = w.id
where w.deadline_at > ? and w.deadline_at <= ?
order by w.deadline_at
limit ?

-- name: UpcomingSchedules
select next_at, name, fsm, 'schedule'
from perdure.schedules
where paused = 0 and next_at > ? and next_at <= ?
order by next_at
limit ?

-- name: CountDueTasks
select count(*), min(s.scheduled_at)
from (
  select scheduled_at
  from queues_task
  where status = 'pending' and task_type = ? and scheduled_at > ? and scheduled_at <= ?
  order by scheduled_at
  limit ?
) s

-- name: CountPlaces
-- Counts each kind, up to a cap.
select 'instances.waiting', count(*) from (select 1 from perdure.waiting limit ?1) s
union all
select 'instances.joining', count(*) from (select 1 from perdure.barriers limit ?1) s
union all
select 'instances.queued', count(*) from (select 1 from perdure.partition_waiting limit ?1) s
union all
select 'instances.unrouted', count(*) from (select 1 from perdure.unrouted u where not {parked u.fsm} limit ?1) s
union all
select 'instances.paused', count(*) from (select 1 from perdure.unrouted u where {parked u.fsm} limit ?1) s
union all
select 'instances.failed', count(*) from (select 1 from perdure.finished where status in ('failed', 'quarantined') limit ?1) s
union all
select 'hooks.running', count(*) from (
  select 1
  from (
    select distinct held.value as id
    from perdure.leases l, json_each(l.ids) held
    where l.queue > 'hook' || char(9) and l.queue < 'hook' || char(10)
  ) held
  cross join perdure.hook_items h on h.id = held.id
  where not exists (select 1 from perdure.hook_ends e where e.id = h.id)
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit ?1
) s
union all
select 'hooks.failed', count(*) from (select 1 from perdure.hook_ends where status in ('failed', 'quarantined') limit ?1) s
union all
select 'tasks.running', count(*) from (select 1 from queues_task where status = 'processing' limit ?1) s
union all
select 'tasks.failed', count(*) from (select 1 from queues_task where status in ('failed', 'quarantined') limit ?1) s
union all
select 'alarms.running', count(*) from (
  select 1
  from (
    select distinct held.value as id
    from perdure.leases l, json_each(l.ids) held
    where l.queue = 'alarm' || char(9)
  ) held
  cross join perdure.alarm_items h on h.id = held.id
  where h.dead is null
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit ?1
) s
union all
select 'alarms.failed', count(*) from (select 1 from (select 1 from perdure.alarm_items where dead is not null limit ?1) a union all select 1 from (select 1 from perdure.timers where status = 'quarantined' limit ?1) d limit ?1) s
union all
select 'actors.total', count(*) from (select 1 from perdure.actors limit ?1) s
union all
select 'actors.failed', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') limit ?1) s
union all
select 'schedules.total', count(*) from (select 1 from perdure.schedules limit ?1) s
