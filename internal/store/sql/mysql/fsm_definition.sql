-- The definitions that processes know, remote definitions (their steps are HTTP endpoints),
-- schedules, and the history of instances, on MySQL.

-- name: DefinitionRecord
insert into perdure.definitions (fsm, version, first_step, queue, steps, `schema`, cancel_step, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(cast(?8 as datetime(6)), utc_timestamp(6)))
on duplicate key update first_step = values(first_step), queue = values(queue), steps = values(steps), `schema` = values(`schema`), cancel_step = values(cancel_step),
  updated_at = values(updated_at)

-- name: PolicyRecord
-- Writes nothing if the newest policies are the same.
insert into perdure.policies (fsm, version, since, retry)
select ?1, ?2, coalesce(cast(?4 as datetime(6)), utc_timestamp(6)), ?3
from (select (select retry from perdure.policies where fsm = ?1 and version = ?2 order by since desc limit 1) as retry) newest
where newest.retry is null or newest.retry <> ?3
on duplicate key update retry = values(retry)

-- name: RemoteInsert
insert ignore into perdure.remote_definitions (fsm, version, spec, secrets, created_at, updated_at)
values (?1, ?2, ?3, ?4, coalesce(cast(?5 as datetime(6)), utc_timestamp(6)), coalesce(cast(?5 as datetime(6)), utc_timestamp(6)))

-- name: ScheduleInsert
insert ignore into perdure.schedules (name, fsm, version, spec, next_at, paused, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?6, coalesce(cast(?7 as datetime(6)), utc_timestamp(6)))

-- name: ScheduleDue
-- The schedules are found before they are locked: a locking scan of the index also locks
-- the first schedule that is not due.
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

-- name: TransitionInsert
insert into perdure.transitions (instance_id, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at)
select o.id, o.step, o.outcome, o.next, o.attempt, o.crashes, o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (
  id varchar(36) path '$[0]', step varchar(128) path '$[1]', outcome varchar(16) path '$[2]', next varchar(128) path '$[3]', attempt int path '$[4]', crashes int path '$[5]',
  error longtext path '$[6]', took bigint path '$[7]'
)) o
