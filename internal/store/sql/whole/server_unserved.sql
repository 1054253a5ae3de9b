-- Due work, by what a process must serve to run it, and whether a process runs some
-- of it now.

-- name: UnservedUnrouted
-- Instances that a process claimed without knowing their definition or step.
select s.queue, s.fsm, s.version, s.step, count(*), min(s.due_at)
from (
  select u.queue, u.fsm, u.version, u.step, i.due_at
  from perdure.unrouted u
  join perdure.instances i on i.id = u.id
  limit ?
) s
group by s.queue, s.fsm, s.version, s.step
order by s.queue, s.fsm, s.version, s.step

-- name: UnservedAlarms
-- Alarms by their type, delays by the type of their actor.
select s.kind, s.name, count(*), min(s.due_at)
from (
  select kind, case when kind = 'machine' then actor_type else type end as name, due_at
  from perdure.alarms
  where status = 'pending' and due_at <= ?
  order by due_at
  limit ?
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
