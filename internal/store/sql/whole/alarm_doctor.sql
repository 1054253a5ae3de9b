-- What must hold of alarms.

-- name: AlarmDoctorOrphan
-- A delay of a machine belongs to an actor that exists. The alarms of users may name
-- actors that are not Perdure's.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.alarms l
where l.kind = 'machine' and not exists (select 1 from perdure.actors a where a.type = l.actor_type and a.id = l.actor_id)

-- name: AlarmDoctorEnded
-- A delay of a machine belongs to an actor that has not ended.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.alarms l
join perdure.actors a on a.type = l.actor_type and a.id = l.actor_id
where l.kind = 'machine' and a.status in ('done', 'error', 'stopped')

-- name: AlarmDoctorStuck
-- A claim that expired long ago was returned by somebody.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.alarms l
where l.status = 'processing' and l.lease_expires_at < ?

-- name: AlarmDoctorUnhandled
-- An alarm that has been due for long has a process that handles it.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.alarms l
where l.status = 'pending' and l.due_at < ?

-- name: AlarmDoctorKept
-- What is recorded of an alarm is kept with it.
select a.actor_type || '/' || a.actor_id || '/' || a.id, min(a.error)
from perdure.attempts a
where a.kind = 'alarm' and not exists (
  select 1 from perdure.alarms l where l.kind = 'custom' and l.actor_type = a.actor_type and l.actor_id = a.actor_id and l.alarm_id = a.id
)
group by a.actor_type, a.actor_id, a.id
