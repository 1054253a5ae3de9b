-- Schedules of state machines.

-- name: ScheduleList
select name, fsm, version, spec, next_at, last_at, paused, updated_at
from perdure.schedules
order by name

-- name: ScheduleDelete
delete from perdure.schedules
where name = ?

-- name: ScheduleAdvance
update perdure.schedules
set last_at = ?, next_at = ?
where name = ?

-- name: ScheduleGet
-- Locked: whoever changes a schedule and whoever fires it take turns.
select name, fsm, version, spec, next_at, last_at, paused, updated_at
from perdure.schedules
where name = ?
{lock for update}

-- name: ScheduleNow
select {now ?}

-- name: ScheduleUpdate
update perdure.schedules
set fsm = ?, version = ?, spec = ?, next_at = ?, paused = ?, updated_at = {now ?}
where name = ?
