-- Due work, by the name that a process must serve to run it, and whether a process
-- runs some of it now.

-- name: UnservedUnrouted
-- Instances that a process claimed without knowing their definition or step.
select s.queue, s.fsm, s.version, s.step, count(*), min(s.due_at)
from (
  select u.queue, u.fsm, u.version, u.step, i.due_at
  from perdure.unrouted u
  join perdure.instances i on i.id = u.id
  where not {parked u.fsm}
  limit ?
) s
group by s.queue, s.fsm, s.version, s.step
order by s.queue, s.fsm, s.version, s.step

-- name: UnservedAlarms
-- Alarms by their type, timers by the type of their actor.
select s.kind, s.name, count(*), min(s.due_at)
from (
  select *
  from (
    select 'alarm' as kind, a.type as name, a.due_at
    from perdure.alarm_items a
    where a.due_at <= ? and (select true from perdure.ready r where r.queue = a.queue and r.suspect = (a.batch_limit is not null) and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id limit 1) is not null
    order by a.due_at, a.actor_type, a.actor_id, a.alarm_id
    limit ?
  ) alarms
  union all
  select *
  from (
    select 'timer' as kind, actor_type as name, due_at
    from perdure.timers
    where status = 'pending' and due_at <= ?
    order by due_at, actor_type, actor_id, alarm_id
    limit ?
  ) timers
) s
group by s.kind, s.name
order by s.kind, s.name

-- name: UnservedSchedules
select s.name, s.fsm, s.version, s.next_at, exists (select 1 from perdure.definitions d where d.fsm = s.fsm and d.version = s.version)
from perdure.schedules s
where s.paused is false
order by s.name
limit ?

-- name: ClaimedInstances
select count(*)
from (select 1 from perdure.leases where queue = ? and expires_at > ? limit 1) s
