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
-- Locks the row, so that a change of a schedule and its firing wait for each other.
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
