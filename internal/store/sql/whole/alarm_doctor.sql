-- The invariants of alarms.

-- name: AlarmDoctorOrphan
-- A timer belongs to an existing actor. The alarms of users may name actors outside
-- Perdure.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.timers l
where not exists (select 1 from perdure.actors a where a.type = l.actor_type and a.id = l.actor_id)

-- name: AlarmDoctorEnded
-- A timer belongs to an unfinished actor.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.timers l
join perdure.actors a on a.type = l.actor_type and a.id = l.actor_id
where a.status in ('done', 'error', 'stopped')

-- name: AlarmDoctorUnhandled
-- An alarm that has been due for long has a process that handles it.
select l.actor_type || '/' || l.actor_id || '/' || l.alarm_id, l.type
from perdure.alarms l
where l.status in ('ready', 'retrying', 'scheduled') and l.due_at < ?
