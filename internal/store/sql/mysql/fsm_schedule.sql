-- Schedules of state machines, on MySQL.

-- name: ScheduleGet
-- Locked: a change of a schedule and its fire take turns.
select name, fsm, version, spec, next_at, last_at, paused, updated_at
from perdure.schedules
where name = ?1
for update

-- name: ScheduleNow
select coalesce(cast(?1 as datetime(6)), utc_timestamp(6))

-- name: ScheduleInsert
insert ignore into perdure.schedules (name, fsm, version, spec, next_at, paused, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?6, coalesce(cast(?7 as datetime(6)), utc_timestamp(6)))

-- name: ScheduleUpdate
update perdure.schedules
set fsm = ?1, version = ?2, spec = ?3, next_at = ?4, paused = ?5, updated_at = coalesce(cast(?6 as datetime(6)), utc_timestamp(6))
where name = ?7

-- name: ScheduleDue
-- They are found before they are locked: a locked walk along the index also locks the first
-- one that is not due.
select s.name, s.fsm, s.version, s.spec, s.next_at, s.last_at, s.paused, s.updated_at
from (
  select x.name
  from perdure.schedules x force index (schedules_due_idx)
  where x.paused = 0 and x.next_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
  order by x.next_at
  limit 10000
) o
straight_join perdure.schedules s force index (primary) on s.name = o.name
where s.paused = 0 and s.next_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
limit ?2
for update skip locked

-- name: ScheduleNextWake
select timestampdiff(microsecond, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), min(next_at))
from perdure.schedules
where paused = 0
having min(next_at) is not null
