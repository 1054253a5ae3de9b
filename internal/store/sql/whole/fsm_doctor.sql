-- Instances that no process can run.

-- name: InstanceDoctorUnrouted
-- No instance is parked because no process knows its definition.
select cast(u.id as text), u.fsm || '@' || u.version || case when u.step = '' then '' else ' step ' || u.step end || ' in queue ' || u.queue
from perdure.unrouted u
where not {parked u.fsm}
order by u.id
limit 1000

-- name: InstanceDoctorUnread
-- The state of a due instance can be decoded.
select cast(i.id as text), i.fsm || '@' || i.version || ': ' || i.error
from perdure.ready r
join perdure.instances i on i.id = r.id
where i.error like 'decode state:%'
order by i.id
limit 1000

-- name: InstanceDoctorUnhandled
-- An instance that has been due for long has a process that runs it.
select {text i.id}, i.fsm || '@' || i.version || ' in queue ' || i.queue
from perdure.ready r
join perdure.instances i on i.id = r.id
where r.due_at < ?
order by i.id
limit 1000

-- name: PolicyAll
select fsm, version, since, retry
from perdure.policies
order by fsm, version, since
limit 10000
