-- Alarms of users, on PostgreSQL. Tests pass the time as now; otherwise now is null and the
-- server's clock decides. Sets are passed as arrays.
--
-- A waiting alarm has a row in ready, a running alarm is in a lease, and a dead letter has
-- its status in the column dead. An outcome names the generation that was claimed: if the
-- alarm was rescheduled while it ran, the outcome does not change it.

-- Parts of the statements in family.sql.

-- name: Alarm.Returned
logged = true,

-- name: AlarmGet
-- The subqueries with a limit are one lookup for each row: as plain joins, they may become
-- scans of all ready rows.
select h.id::text, h.actor_type, h.actor_id, h.alarm_id, h.type, h.priority, h.due_at, h.occurs_at, h.sequence, h.generation, h.payload,
  h.every_us, h.cron, h.zone, h.base_at, h.missed, h.missed_cap, h.caught_up, h.policy, h.max_attempts, h.attempt, h.crashes, h.error,
  h.webhook, h.trace, h.created_at, coalesce(h.dead, case when r.id is null then 'running' else 'ready' end),
  l.worker, l.expires_at, coalesce(l.claimed_at, h.last_attempt_at)
from perdure.alarm_items h
left join lateral (
  select r.id from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1
) r on true
left join lateral (
  select l.worker, l.claimed_at, l.expires_at from perdure.leases l where h.dead is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1
) l on true
where h.actor_type = ? and h.actor_id = ? and h.alarm_id = ?

-- name: AlarmInsert
-- Inserts an alarm, or locks the existing alarm with the same key.
with new as (
  insert into perdure.alarm_items as a (id, actor_type, actor_id, alarm_id, type, queue, priority, sequence, payload, every_us, cron, zone, missed, missed_cap,
    policy, max_attempts, webhook, trace, generation, due_at, occurs_at, base_at, created_at)
  select $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::smallint, $8::bigint, $9::json, $10::bigint, $11::text, $12::text, $13::text, $14::integer,
    $15::json, $16::integer, $17::text, $18::text, 1, t.due, t.due, case when $10::bigint is not null then t.due end, t.now
  from (
    select coalesce($19::timestamptz, now()) as now,
      coalesce($20::timestamptz, coalesce($19::timestamptz, now()) + $21::bigint * interval '1 microsecond') as due
  ) t
  on conflict (actor_type, actor_id, alarm_id) do update
  set generation = a.generation
  where false
  returning queue, priority, due_at, id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from new

-- name: AlarmReplace
-- Replaces the existing alarm with the key of a new one. The existing alarm is locked. A
-- recurring alarm with the same ticks keeps its place. A running alarm stays in its lease:
-- its outcome makes it ready.
with t as (
  select coalesce($19::timestamptz, now()) as now,
    coalesce($20::timestamptz, coalesce($19::timestamptz, now()) + $21::bigint * interval '1 microsecond') as due
), old as (
  select a.id, a.queue, a.batch_limit, a.priority, a.due_at, a.dead,
    ($10::bigint is not null or $11::text is not null) and a.type = $5::text and a.dead is null
      and a.every_us is not distinct from $10::bigint and a.cron is not distinct from $11::text and a.zone is not distinct from $12::text
      and a.base_at is not distinct from coalesce($22::timestamptz, a.base_at) as same
  from perdure.alarm_items a
  where a.actor_type = $2::text and a.actor_id = $3::text and a.alarm_id = $4::text and a.id <> $1::uuid
), waited as (
  delete from perdure.ready r
  using old o
  where r.queue = o.queue and r.suspect = (o.batch_limit is not null) and r.priority = o.priority and r.due_at = o.due_at and r.id = o.id
  returning r.id
), changed as (
  update perdure.alarm_items a
  set type = $5::text, queue = $6::text, priority = $7::smallint, payload = $9::json, missed = $13::text, missed_cap = $14::integer,
    policy = $15::json, max_attempts = $16::integer, webhook = $17::text, trace = $18::text,
    every_us = $10::bigint, cron = $11::text, zone = $12::text, dead = null,
    sequence = case when o.same then a.sequence else $8::bigint end,
    generation = a.generation + case when o.same then 0 else 1 end,
    due_at = case when o.same then a.due_at else t.due end,
    occurs_at = case when o.same then a.occurs_at else t.due end,
    base_at = case when o.same then a.base_at when $10::bigint is not null then t.due end,
    caught_up = case when o.same then a.caught_up else 0 end,
    attempt = case when o.same then a.attempt else 0 end,
    error = case when o.same then a.error end,
    created_at = case when o.same then a.created_at else t.now end,
    crashes = case when o.same or o.dead is null and w.id is null then a.crashes else 0 end,
    batch_limit = case when o.same or o.dead is null and w.id is null then a.batch_limit end
  from t, old o
  left join waited w on w.id = o.id
  where a.id = o.id
  returning a.queue, a.batch_limit is not null as suspect, a.priority, a.due_at, a.id, o.dead is not null or w.id is not null as waits
)
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, suspect, priority, due_at, id
from changed
where waits

-- name: AlarmDone
delete from perdure.alarm_items a
using unnest(?::uuid[], ?::bigint[]) as o (id, generation)
where a.id = o.id and a.generation = o.generation

-- name: AlarmAdvance
-- A recurring alarm waits for its next tick.
update perdure.alarm_items a
set due_at = o.next, occurs_at = o.next, caught_up = o.caught_up, attempt = 0, crashes = 0, batch_limit = null, error = o.error, logged = a.logged or o.error is not null
from unnest(?::uuid[], ?::bigint[], ?::timestamptz[], ?::integer[], ?::text[]) as o (id, generation, next, caught_up, error)
where a.id = o.id and a.generation = o.generation

-- name: AlarmTried
-- Records failed attempts. Without a delay, the attempt was the last one.
update perdure.alarm_items a
set attempt = a.attempt + 1, batch_limit = null, error = o.error, logged = true, last_attempt_at = t.now - o.took * interval '1 microsecond',
  due_at = coalesce(t.now + o.delay * interval '1 microsecond', a.due_at), dead = case when o.delay is null then 'failed' end
from unnest(?::uuid[], ?::bigint[], ?::text[], ?::bigint[], ?::bigint[]) as o (id, generation, error, took, delay), (select coalesce(?::timestamptz, now()) as now) t
where a.id = o.id and a.generation = o.generation

-- name: AlarmYield
-- Alarms that were rescheduled while they ran: their crashes are forgiven.
update perdure.alarm_items a
set crashes = 0, batch_limit = null
from unnest(?::uuid[], ?::bigint[]) as o (id, generation)
where a.id = o.id and a.generation <> o.generation

-- name: AlarmBury
-- Keeps a permanently failed tick as a separate dead letter: the alarm continues.
insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, dead, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, attempt, crashes, error, webhook, trace, created_at, last_attempt_at, logged)
select ?::uuid, actor_type, actor_id, ?::text, type, queue, 'failed', priority, due_at, occurs_at, sequence, 1, ?::json,
  policy, max_attempts, attempt + 1, crashes, ?::text, webhook, trace, created_at, last_attempt_at, true
from perdure.alarm_items
where id = ?::uuid and generation = ?
on conflict (actor_type, actor_id, alarm_id) do update
set attempt = excluded.attempt, error = excluded.error, logged = true

-- name: AlarmAttemptCopy
-- Copies the attempts of a tick to its dead letter.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'alarm', b.id::text, t.seq, t.attempt, t.outcome, t.error, t.worker, t.began_at, t.ended_at
from perdure.alarm_items a
join perdure.alarm_items b on b.actor_type = a.actor_type and b.actor_id = a.actor_id and b.alarm_id = ?::text
cross join lateral (
  select *
  from perdure.attempts t
  where t.kind = 'alarm' and t.id = a.id::text
  order by t.seq desc
  limit ?
) t
where a.id = ?::uuid and a.generation = ?
on conflict do nothing

-- name: AlarmQuarantine
update perdure.alarm_items
set dead = 'quarantined', crashes = crashes + 1, batch_limit = null, error = ?, logged = true, due_at = greatest(due_at, coalesce(?::timestamptz, now())),
  last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where alarm_items.id = any(l.ids)), last_attempt_at)
where id = ?::uuid

-- name: AlarmMove
-- An alarm that was attempted already, or recurs, keeps its original time.
update perdure.alarm_items
set occurs_at = case when attempt = 0 and every_us is null and cron is null then $1::timestamptz else occurs_at end, due_at = $1::timestamptz
where id = $2::uuid

-- name: AlarmChosen
-- Locks the alarms that meet conditions.
select h.id::text
from perdure.alarm_items h
left join lateral (
  select r.id from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1
) r on true
{where}
order by h.due_at, h.actor_type, h.actor_id, h.alarm_id
limit {value}
for update of h{skip}

-- name: AlarmRemove
-- Removes alarms that are locked, in any status, and revokes the claims of running alarms.
-- The first statement waits for a claim that is not committed yet: the second then sees its
-- lease. An alarm that was scheduled after the lock found nothing is not locked; it is
-- removed only if no other transaction changes it.
select 1
from perdure.alarm_items h
join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where {which}
for update of r
;
with old as (
  select h.id, h.xmin as version
  from perdure.alarm_items h
  where {which}
), gone as (
  delete from perdure.alarm_items a
  using old o
  where a.id = o.id and a.xmin = o.version
  returning a.id, a.queue, a.batch_limit, a.priority, a.due_at, a.dead
), waited as (
  delete from perdure.ready r
  using gone o
  where r.queue = o.queue and r.suspect = (o.batch_limit is not null) and r.priority = o.priority and r.due_at = o.due_at and r.id = o.id
  returning r.id
), taken as (
  insert into perdure.interrupts (id, token)
  select o.id, l.token
  from gone o
  cross join lateral (select token from perdure.leases l where o.id = any(l.ids) order by l.seq desc limit 1) l
  where o.dead is null and not exists (select 1 from waited w where w.id = o.id)
  on conflict do nothing
)
select coalesce(o.dead, case when w.id is null then 'running' else 'ready' end)
from gone o
left join waited w on w.id = o.id

-- name: AlarmCount
select coalesce(h.dead, case when r.id is null then 'running' when h.attempt > 0 then 'retrying' when h.due_at > {now} then 'scheduled' else 'ready' end), count(*)
from perdure.alarm_items h
left join lateral (
  select r.id from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1
) r on true
{where}
group by 1
