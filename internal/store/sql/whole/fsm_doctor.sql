-- Instances and schedules that no process serves.

-- name: InstanceDoctorUnrouted
-- An instance is not parked for want of a process that knows it.
select cast(u.id as text), u.fsm || '@' || u.version || case when u.step = '' then '' else ' step ' || u.step end || ' in queue ' || u.queue
from perdure.unrouted u
order by u.id
limit 1000

-- name: InstanceDoctorUnserved
-- A queue in which instances have been due for long has a process that claims them.
select min(cast(r.id as text)), count(*) || ' due in queue ' || r.queue
from perdure.ready r
where r.due_at < ? and not exists (select 1 from perdure.leases l where l.queue = r.queue)
group by r.queue

-- name: InstanceDoctorUnread
-- The state of an instance that is due can be decoded.
select cast(i.id as text), i.fsm || '@' || i.version || ': ' || i.error
from perdure.ready r
join perdure.instances i on i.id = r.id
where i.error like 'decode state:%'
order by i.id
limit 1000

-- name: ScheduleDoctorUnserved
-- The definition that a schedule starts is one that a process has served.
select s.name, s.fsm || '@' || s.version
from perdure.schedules s
where s.paused is false and not exists (select 1 from perdure.definitions d where d.fsm = s.fsm and d.version = s.version)
