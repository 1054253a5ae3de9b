-- Alarms of users, on PostgreSQL. Those of machines are not touched here: every
-- statement says kind = 'custom'. now is given by tests; otherwise it is null and
-- the server's clock decides. Every statement that ends or extends a claim is
-- guarded by its token, and what records an outcome also by the generation: an
-- alarm that was scheduled anew meanwhile is not the one that was fired.

-- name: AlarmLock
select actor_type, actor_id, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace,
  created_at, worker, lease_expires_at, last_attempt_at, batch_limit
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ?
for update

-- name: AlarmRefresh
-- A recurring alarm that is scheduled again with the same ticks goes on where it
-- is.
update perdure.alarms
set priority = ?, payload = ?::json, missed = ?, missed_cap = ?, policy = ?::json, max_attempts = ?, webhook = ?, trace = ?
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and type = ? and status in ('pending', 'processing')
  and every_us is not distinct from ?::bigint and cron is not distinct from ?::text and zone is not distinct from ?::text
  and base_at is not distinct from coalesce(?::timestamptz, base_at)

-- name: AlarmSchedule
-- Whoever runs it keeps the claim: the outcome is dropped, for it is of another
-- generation.
insert into perdure.alarms as a (actor_type, actor_id, kind, alarm_id, type, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, policy, max_attempts, webhook, trace, created_at)
select $1::text, $2::text, 'custom', $3::text, $4::text, $5::smallint, t.due, t.due, $6::bigint, 1, $7::json,
  $8::bigint, $9::text, $10::text, case when $8::bigint is not null then t.due end, $11::text, $12::integer, $13::json, $14::integer, $15::text, $16::text, t.now
from (
  select coalesce($17::timestamptz, now()) as now,
    coalesce($18::timestamptz, coalesce($17::timestamptz, now()) + $19::bigint * interval '1 microsecond') as due
) t
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
  and a.base_at is not distinct from coalesce($20::timestamptz, a.base_at)
)

-- name: AlarmExpired
-- First half of the return of expired claims: lock them.
select actor_type, actor_id, alarm_id, crashes, coalesce(worker, ''), coalesce(token, ''), batch_limit
from perdure.alarms
where kind = 'custom' and status = 'processing' and lease_expires_at <= coalesce(?::timestamptz, now())
order by lease_expires_at
limit ?
for update skip locked

-- name: AlarmReturn
-- Second half, for one that is locked.
update perdure.alarms
set status = ?, crashes = ?, batch_limit = ?::integer,
  due_at = greatest(due_at, coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond'),
  error = ?, logged = true, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ?
returning actor_type, actor_id, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace,
  created_at, worker, lease_expires_at, last_attempt_at, batch_limit

-- name: AlarmClaim
-- Of each type and priority only the oldest due rows are looked at.
with due as (
  select d.actor_type, d.actor_id, d.alarm_id
  from unnest($6::text[]) as handled (type)
  cross join (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select actor_type, actor_id, alarm_id, due_at, sequence
    from perdure.alarms
    where kind = 'custom' and type = handled.type and priority = level.priority
      and status = 'pending' and due_at <= coalesce($3::timestamptz, now()) and (batch_limit is null or batch_limit >= $7::integer){openable Row payload}
    order by due_at, sequence
    limit $5
    for update skip locked
  ) d
  order by level.priority, d.due_at, d.sequence
  limit $5
)
update perdure.alarms a
set status = 'processing', worker = $1, token = $2, last_attempt_at = coalesce($3::timestamptz, now()),
  lease_expires_at = coalesce($3::timestamptz, now()) + $4::bigint * interval '1 microsecond'
from due d
where a.kind = 'custom' and a.actor_type = d.actor_type and a.actor_id = d.actor_id and a.alarm_id = d.alarm_id
returning a.actor_type, a.actor_id, a.alarm_id, a.type, a.status, a.priority, a.due_at, a.occurs_at, a.sequence, a.generation, a.payload,
  a.every_us, a.cron, a.zone, a.base_at, a.missed, a.missed_cap, a.caught_up, a.policy, a.max_attempts, a.attempts, a.crashes, a.error,
  a.webhook, a.trace, a.created_at, a.worker, a.lease_expires_at, a.last_attempt_at, a.batch_limit

-- name: AlarmNextWake
-- Microseconds until something is due: an alarm that is handled here, or an
-- expired claim of anybody.
select (extract(epoch from least(greatest(min(at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from (
  select d.due_at as at
  from unnest($2::text[]) as handled (type)
  cross join (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select due_at
    from perdure.alarms
    where kind = 'custom' and type = handled.type and priority = level.priority and status = 'pending'
      and (batch_limit is null or batch_limit >= $3::integer){openable Row payload}
    order by due_at, sequence
    limit 1
  ) d
  union all
  (
    select lease_expires_at
    from perdure.alarms
    where kind = 'custom' and status = 'processing'
    order by lease_expires_at
    limit 1
  )
) wakes
having min(at) is not null

-- name: AlarmExtend
update perdure.alarms
set lease_expires_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond'
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ?

-- name: AlarmPostpone
-- Gives a claim back for a while, at no cost, with an error if there is one.
update perdure.alarms
set status = 'pending', error = coalesce(?::text, error), due_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond',
  worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmAdvance
update perdure.alarms
set status = 'pending', due_at = ?::timestamptz, occurs_at = ?::timestamptz, caught_up = ?, attempts = 0, crashes = 0, batch_limit = null, error = ?, logged = logged or ?::text is not null,
  worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmRetry
update perdure.alarms
set status = 'pending', attempts = attempts + 1, batch_limit = null, error = ?, logged = true, due_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond',
  worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmFail
update perdure.alarms
set status = 'failed', attempts = attempts + 1, error = ?, logged = true, worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmBury
-- Keeps a tick that failed for good as a dead letter of its own: the alarm goes
-- on. The row is locked, so that the outcome that follows finds it as it is.
insert into perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, logged)
select actor_type, actor_id, kind, ?::text, type, 'failed', priority, due_at, occurs_at, sequence, 1, ?::json,
  policy, max_attempts, attempts + 1, crashes, ?::text, webhook, trace, created_at, true
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?
for update
on conflict (actor_type, actor_id, kind, alarm_id) do update
set attempts = excluded.attempts, error = excluded.error, logged = excluded.logged

-- name: AlarmNotice
-- Records a notification of what became of an alarm, if the claim is still held and,
-- where one is given, the generation is the one that was fired.
-- The row is locked, so that the outcome that follows finds it as it is.
insert into perdure.alarms (actor_type, actor_id, kind, alarm_id, type, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, webhook, trace, created_at)
select '', '', 'custom', ?::text, ?::text, 0, coalesce(?::timestamptz, now()), coalesce(?::timestamptz, now()), ?::bigint, 1, ?::json,
  ?::json, ?::integer, ?::text, trace, coalesce(?::timestamptz, now())
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = coalesce(?::bigint, generation, 0)
for update

-- name: AlarmMove
-- What was tried already, or recurs, stays the one that it is.
update perdure.alarms
set occurs_at = case when attempts = 0 and every_us is null and cron is null then $1::timestamptz else occurs_at end, due_at = $1::timestamptz
where kind = 'custom' and actor_type = $2 and actor_id = $3 and alarm_id = $4 and status = 'pending'

-- name: AlarmFire
update perdure.alarms
set occurs_at = least(occurs_at, coalesce($1::timestamptz, now())), due_at = coalesce($1::timestamptz, now())
where kind = 'custom' and actor_type = $2 and actor_id = $3 and alarm_id = $4 and status = 'pending'

-- name: AlarmSkip
update perdure.alarms
set due_at = $1::timestamptz, occurs_at = $1::timestamptz, caught_up = 0, attempts = 0, crashes = 0, batch_limit = null, error = null
where kind = 'custom' and actor_type = $2 and actor_id = $3 and alarm_id = $4 and status = 'pending'

-- name: AlarmRevive
-- An operator's retry of a dead letter: due now, with all attempts before it.
update perdure.alarms
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, due_at = coalesce(?::timestamptz, now())
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and status in ('failed', 'quarantined')

-- name: AlarmReviveMany
update perdure.alarms a
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, due_at = coalesce({value}::timestamptz, now())
from (
  select actor_type, actor_id, alarm_id
  from perdure.alarms
  {where}
  order by due_at, actor_type, actor_id, alarm_id
  limit {value}
  for update skip locked
) d
where a.kind = 'custom' and a.actor_type = d.actor_type and a.actor_id = d.actor_id and a.alarm_id = d.alarm_id

-- name: AlarmCancelMany
delete from perdure.alarms a
using (
  select actor_type, actor_id, alarm_id
  from perdure.alarms
  {where}
  order by actor_type, actor_id, alarm_id
  limit {value}
  for update
) d
where a.kind = 'custom' and a.actor_type = d.actor_type and a.actor_id = d.actor_id and a.alarm_id = d.alarm_id

-- name: AlarmsDead
-- Dead letters whose last time was long ago. A quarantined alarm that recurs is kept:
-- it is a schedule too.
select actor_type, actor_id, alarm_id
from perdure.alarms
where status in ('failed', 'quarantined') and due_at <= coalesce(?::timestamptz, now()) - ?::bigint * interval '1 microsecond'
  and kind = 'custom' and every_us is null and cron is null
order by due_at
limit ?
for update skip locked
