-- Schedules of state machines, on PostgreSQL.

-- name: ScheduleDue
select name, fsm, version, spec, next_at, last_at, paused, updated_at
from perdure.schedules
where next_at <= coalesce(?::timestamptz, now()) and not paused
order by next_at
limit ?
for update skip locked

-- name: ScheduleNextWake
select (extract(epoch from least(greatest(min(next_at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce(?::timestamptz, now())) * 1000000)::bigint
from perdure.schedules
where not paused
having min(next_at) is not null
