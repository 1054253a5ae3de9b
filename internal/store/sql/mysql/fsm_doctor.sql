-- Instances that no process can run, on MySQL.

-- name: InstanceDoctorUnrouted
-- An instance is not parked for want of a process that knows it.
select u.id, concat(u.fsm, '@', u.version, case when u.step = '' then '' else concat(' step ', u.step) end, ' in queue ', u.queue)
from perdure.unrouted u
order by u.id
limit 1000

-- name: InstanceDoctorUnread
-- The state of an instance that is due can be decoded.
select i.id, concat(i.fsm, '@', i.version, ': ', i.error)
from perdure.ready r
join perdure.instances i on i.id = r.id
where i.error like 'decode state:%'
order by i.id
limit 1000
