-- Alarms of users, on SQLite. Those of machines are not touched here: every
-- statement says kind = 'custom'. Every statement that ends or extends a claim is
-- guarded by its token, and what records an outcome also by the generation: an
-- alarm that was scheduled anew meanwhile is not the one that was fired.

-- name: AlarmLock
select actor_type, actor_id, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace,
  created_at, worker, lease_expires_at, last_attempt_at, batch_limit
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ?

-- name: AlarmRefresh
-- A recurring alarm that is scheduled again with the same ticks goes on where it
-- is.
update perdure.alarms
set priority = ?, payload = ?, missed = ?, missed_cap = ?, policy = ?, max_attempts = ?, webhook = ?, trace = ?
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and type = ? and status in ('pending', 'processing')
  and every_us is not distinct from ? and cron is not distinct from ? and zone is not distinct from ?
  and base_at is not distinct from coalesce(?, base_at)

-- name: AlarmSchedule
-- Whoever runs it keeps the claim: the outcome is dropped, for it is of another
-- generation.
insert into perdure.alarms as a (actor_type, actor_id, kind, alarm_id, type, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, policy, max_attempts, webhook, trace, created_at)
select ?1, ?2, 'custom', ?3, ?4, ?5, t.due, t.due, ?6, 1, ?7,
  ?8, ?9, ?10, case when ?8 is not null then t.due end, ?11, ?12, ?13, ?14, ?15, ?16, t.now
from (select ?17 as now, coalesce(?18, ?17 + ?19) as due) t
where true
on conflict (actor_type, actor_id, kind, alarm_id) do update
set type = excluded.type, priority = excluded.priority, due_at = excluded.due_at, occurs_at = excluded.occurs_at,
  sequence = excluded.sequence, generation = coalesce(a.generation, 0) + 1, payload = excluded.payload,
  every_us = excluded.every_us, cron = excluded.cron, zone = excluded.zone, base_at = excluded.base_at,
  missed = excluded.missed, missed_cap = excluded.missed_cap, caught_up = 0, policy = excluded.policy,
  max_attempts = excluded.max_attempts, attempts = 0, error = null, webhook = excluded.webhook, trace = excluded.trace,
  created_at = excluded.created_at,
  status = case when a.status = 'processing' then 'processing' else 'pending' end,
  crashes = case when a.status = 'processing' then a.crashes else 0 end,
  batch_limit = case when a.status = 'processing' then a.batch_limit end
where not (
  (excluded.every_us is not null or excluded.cron is not null) and a.type = excluded.type
  and a.status in ('pending', 'processing') and a.every_us is not distinct from excluded.every_us
  and a.cron is not distinct from excluded.cron and a.zone is not distinct from excluded.zone
  and a.base_at is not distinct from coalesce(?20, a.base_at)
)

-- name: AlarmExpired
-- First half of the return of expired claims.
select actor_type, actor_id, alarm_id, crashes, coalesce(worker, ''), coalesce(token, ''), batch_limit
from perdure.alarms
where kind = 'custom' and status = 'processing' and lease_expires_at <= ?
order by lease_expires_at
limit ?

-- name: AlarmReturn
-- Second half.
update perdure.alarms
set status = ?, crashes = ?, batch_limit = ?,
  due_at = max(due_at, ? + ?),
  error = ?, logged = 1, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ?
returning actor_type, actor_id, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace,
  created_at, worker, lease_expires_at, last_attempt_at, batch_limit

-- name: AlarmClaim
-- The types are a JSON array. Of each type and priority only the oldest due rows
-- are looked at.
update perdure.alarms
set status = 'processing', worker = ?1, token = ?2, last_attempt_at = ?3, lease_expires_at = ?3 + ?4
where rowid in (
  select a.rowid
  from jsonb_each(?6) handled
  cross join (values (-1), (0), (1)) level
  cross join perdure.alarms a
  where a.rowid in (
    select rowid
    from perdure.alarms
    where kind = 'custom' and type = handled.value and priority = level.column1 and status = 'pending' and due_at <= ?3
      and (batch_limit is null or batch_limit >= ?7){openable Row payload}
    order by due_at, sequence
    limit ?5
  )
  order by a.priority, a.due_at, a.sequence
  limit ?5
)
returning actor_type, actor_id, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace,
  created_at, worker, lease_expires_at, last_attempt_at, batch_limit

-- name: AlarmNextWake
-- Microseconds until something is due: an alarm that is handled here, or an
-- expired claim of anybody.
select min(max(min(at), -62135510400000000), 253402214400000000) - ?1
from (
  select (
    select min(due_at)
    from perdure.alarms
    where kind = 'custom' and type = handled.value and priority = level.column1 and status = 'pending'
      and (batch_limit is null or batch_limit >= ?3){openable Row payload}
  ) as at
  from jsonb_each(?2) handled
  cross join (values (-1), (0), (1)) level
  union all
  select min(lease_expires_at)
  from perdure.alarms
  where kind = 'custom' and status = 'processing'
)

-- name: AlarmExtend
update perdure.alarms
set lease_expires_at = ? + ?
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ?

-- name: AlarmPostpone
-- Gives a claim back for a while, at no cost, with an error if there is one.
update perdure.alarms
set status = 'pending', error = coalesce(?, error), due_at = ? + ?, worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmAdvance
update perdure.alarms
set status = 'pending', due_at = ?, occurs_at = ?, caught_up = ?, attempts = 0, crashes = 0, batch_limit = null, error = ?, logged = logged or ? is not null,
  worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmRetry
update perdure.alarms
set status = 'pending', attempts = attempts + 1, batch_limit = null, error = ?, logged = 1, due_at = ? + ?, worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmFail
update perdure.alarms
set status = 'failed', attempts = attempts + 1, error = ?, logged = 1, worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmBury
-- Keeps a tick that failed for good as a dead letter of its own: the alarm goes
-- on.
insert into perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, logged)
select actor_type, actor_id, kind, ?, type, 'failed', priority, due_at, occurs_at, sequence, 1, ?,
  policy, max_attempts, attempts + 1, crashes, ?, webhook, trace, created_at, 1
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?
on conflict (actor_type, actor_id, kind, alarm_id) do update
set attempts = excluded.attempts, error = excluded.error, logged = excluded.logged

-- name: AlarmNotice
-- Records a notification of what became of an alarm, if the claim is still held and,
-- where one is given, the generation is the one that was fired.
insert into perdure.alarms (actor_type, actor_id, kind, alarm_id, type, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, webhook, trace, created_at)
select '', '', 'custom', ?, ?, 0, ?, ?, ?, 1, ?,
  ?, ?, ?, trace, ?
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = coalesce(?, generation, 0)

-- name: AlarmMove
-- What was tried already, or recurs, stays the one that it is.
update perdure.alarms
set occurs_at = case when attempts = 0 and every_us is null and cron is null then ?1 else occurs_at end, due_at = ?1
where kind = 'custom' and actor_type = ?2 and actor_id = ?3 and alarm_id = ?4 and status = 'pending'

-- name: AlarmFire
update perdure.alarms
set occurs_at = min(occurs_at, ?1), due_at = ?1
where kind = 'custom' and actor_type = ?2 and actor_id = ?3 and alarm_id = ?4 and status = 'pending'

-- name: AlarmSkip
update perdure.alarms
set due_at = ?1, occurs_at = ?1, caught_up = 0, attempts = 0, crashes = 0, batch_limit = null, error = null
where kind = 'custom' and actor_type = ?2 and actor_id = ?3 and alarm_id = ?4 and status = 'pending'

-- name: AlarmRevive
-- An operator's retry of a dead letter: due now, with all attempts before it.
update perdure.alarms
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, due_at = ?
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and status in ('failed', 'quarantined')

-- name: AlarmReviveMany
update perdure.alarms
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, due_at = {value}
where rowid in (
  select rowid
  from perdure.alarms
  {where}
  order by due_at, actor_type, actor_id, alarm_id
  limit {value}
)

-- name: AlarmCancelMany
delete from perdure.alarms
where rowid in (
  select rowid
  from perdure.alarms
  {where}
  limit {value}
)

-- name: AlarmsDead
-- Dead letters whose last time was long ago. A quarantined alarm that recurs is kept:
-- it is a schedule too.
select actor_type, actor_id, alarm_id
from perdure.alarms
where status in ('failed', 'quarantined') and due_at <= ? - ?
  and kind = 'custom' and every_us is null and cron is null
order by due_at
limit ?
