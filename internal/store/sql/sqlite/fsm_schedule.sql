-- Schedules of state machines, on SQLite.

-- name: ScheduleDue
select name, fsm, version, spec, next_at, last_at, paused, updated_at
from perdure.schedules
where next_at <= ? and paused = 0
order by next_at
limit ?

-- name: ScheduleNextWake
select min(max(min(next_at), -62135510400000000), 253402214400000000) - ?
from perdure.schedules
where paused = 0
