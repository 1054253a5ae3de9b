-- Alarms of users, on SQLite. now is always passed. A set is passed as JSON, with an
-- array for each row. A line with only a semicolon separates the statements of one name.
--
-- A waiting alarm has a row in ready, a running alarm is in a lease, and a dead letter
-- has its status in the column dead. An outcome names the generation that was claimed: if
-- the alarm was rescheduled while it ran, the outcome does not change it.

-- Parts of the statements in family.sql.

-- name: Alarm.Returned
logged = 1,

-- name: AlarmGet
select h.id, h.actor_type, h.actor_id, h.alarm_id, h.type, h.priority, h.due_at, h.occurs_at, h.sequence, h.generation, h.payload,
  h.every_us, h.cron, h.zone, h.base_at, h.missed, h.missed_cap, h.caught_up, h.policy, h.max_attempts, h.attempt, h.crashes, h.error,
  h.webhook, h.trace, h.created_at, coalesce(h.dead, case when r.id is null then 'running' else 'ready' end),
  (select l.worker from perdure.leases l where h.dead is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1),
  (select l.expires_at from perdure.leases l where h.dead is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1),
  coalesce((select l.claimed_at from perdure.leases l where h.dead is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1), h.last_attempt_at)
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.actor_type = ? and h.actor_id = ? and h.alarm_id = ?

-- name: AlarmInsert
insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, priority, sequence, payload, every_us, cron, zone, missed, missed_cap,
  policy, max_attempts, webhook, trace, generation, due_at, occurs_at, base_at, created_at)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 1, t.due, t.due, case when ?10 is not null then t.due end, ?19
from (select coalesce(?20, ?19 + ?21) as due) t
where true
on conflict (actor_type, actor_id, alarm_id) do nothing
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.alarm_items
where id = ?1

-- name: AlarmReplace
-- Replaces the existing alarm with the key of a new one. A recurring alarm with the same
-- ticks keeps its place. A running alarm stays in its lease: its outcome makes it ready.
update perdure.ready
set queue = ?6, suspect = iif(o.same, suspect, 0), priority = ?7, due_at = iif(o.same, due_at, coalesce(?20, ?19 + ?21))
from (
  select h.id as item, h.queue as lane, h.priority as urgency, h.due_at as due, (?10 is not null or ?11 is not null) and h.type = ?5 and h.dead is null and h.every_us is ?10 and h.cron is ?11 and h.zone is ?12
      and h.base_at is coalesce(?22, h.base_at) as same
  from perdure.alarm_items h
  where h.actor_type = ?2 and h.actor_id = ?3 and h.alarm_id = ?4 and h.id <> ?1
) o
where queue = o.lane and suspect in (0, 1) and priority = o.urgency and due_at = o.due and id = o.item
;
insert into perdure.ready (queue, priority, due_at, id)
select ?6, ?7, coalesce(?20, ?19 + ?21), h.id
from perdure.alarm_items h
where h.actor_type = ?2 and h.actor_id = ?3 and h.alarm_id = ?4 and h.id <> ?1 and h.dead is not null
;
update perdure.alarm_items
set type = ?5, queue = ?6, priority = ?7, payload = ?9, missed = ?13, missed_cap = ?14, policy = ?15, max_attempts = ?16, webhook = ?17, trace = ?18,
  every_us = ?10, cron = ?11, zone = ?12, dead = null,
  sequence = iif(o.same, sequence, ?8),
  generation = generation + iif(o.same, 0, 1),
  due_at = o.due,
  occurs_at = iif(o.same, occurs_at, o.due),
  base_at = iif(o.same, base_at, iif(?10 is not null, o.due, null)),
  caught_up = iif(o.same, caught_up, 0),
  attempt = iif(o.same, attempt, 0),
  error = iif(o.same, error, null),
  created_at = iif(o.same, created_at, ?19),
  crashes = iif(o.same or not o.waits, crashes, 0),
  batch_limit = iif(o.same or not o.waits, batch_limit, null)
from (
  select n.item, n.same, n.due, exists (select 1 from perdure.ready r where r.queue = ?6 and r.suspect in (0, 1) and r.priority = ?7 and r.due_at = n.due and r.id = n.item) as waits
  from (
    select p.item, p.same, iif(p.same, p.due_at, coalesce(?20, ?19 + ?21)) as due
    from (
      select h.id as item, h.due_at, (?10 is not null or ?11 is not null) and h.type = ?5 and h.dead is null and h.every_us is ?10 and h.cron is ?11 and h.zone is ?12
      and h.base_at is coalesce(?22, h.base_at) as same
      from perdure.alarm_items h
      where h.actor_type = ?2 and h.actor_id = ?3 and h.alarm_id = ?4 and h.id <> ?1
    ) p
  ) n
) o
where perdure.alarm_items.id = o.item

-- name: AlarmDone
delete from perdure.alarm_items
where (id, generation) in (select value->>0, value->>1 from jsonb_each(?1))

-- name: AlarmAdvance
-- A recurring alarm waits for its next tick.
update perdure.alarm_items
set due_at = o.value->>2, occurs_at = o.value->>2, caught_up = o.value->>3, attempt = 0, crashes = 0, batch_limit = null,
  error = o.value->>4, logged = logged or o.value->>4 is not null
from jsonb_each(?1) o
where perdure.alarm_items.id = o.value->>0 and generation = o.value->>1

-- name: AlarmTried
-- Records failed attempts. Without a delay, the attempt was the last one.
update perdure.alarm_items
set attempt = attempt + 1, batch_limit = null, error = o.value->>2, logged = 1, last_attempt_at = ?2 - (o.value->>3),
  due_at = coalesce(?2 + (o.value->>4), due_at), dead = iif(o.value->>4 is null, 'failed', null)
from jsonb_each(?1) o
where perdure.alarm_items.id = o.value->>0 and generation = o.value->>1

-- name: AlarmYield
-- Alarms that were rescheduled while they ran: their crashes are forgiven.
update perdure.alarm_items
set crashes = 0, batch_limit = null
from jsonb_each(?1) o
where perdure.alarm_items.id = o.value->>0 and generation <> o.value->>1

-- name: AlarmBury
-- Keeps a permanently failed tick as a separate dead letter: the alarm continues.
insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, dead, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, attempt, crashes, error, webhook, trace, created_at, last_attempt_at, logged)
select ?, actor_type, actor_id, ?, type, queue, 'failed', priority, due_at, occurs_at, sequence, 1, ?,
  policy, max_attempts, attempt + 1, crashes, ?, webhook, trace, created_at, last_attempt_at, 1
from perdure.alarm_items
where id = ? and generation = ?
on conflict (actor_type, actor_id, alarm_id) do update
set attempt = excluded.attempt, error = excluded.error, logged = 1

-- name: AlarmAttemptCopy
-- Copies the attempts of a tick to its dead letter.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'alarm', t.buried, t.seq, t.attempt, t.outcome, t.error, t.worker, t.began_at, t.ended_at
from (
  select b.id as buried, t.seq, t.attempt, t.outcome, t.error, t.worker, t.began_at, t.ended_at
  from perdure.alarm_items a
  join perdure.alarm_items b on b.actor_type = a.actor_type and b.actor_id = a.actor_id and b.alarm_id = ?1
  join perdure.attempts t on t.kind = 'alarm' and t.id = a.id and t.actor_type = '' and t.actor_id = ''
  where a.id = ?3 and a.generation = ?4
  order by t.seq desc
  limit ?2
) t
where true
on conflict do nothing

-- name: AlarmQuarantine
update perdure.alarm_items
set dead = 'quarantined', crashes = crashes + 1, batch_limit = null, error = ?1, logged = 1, due_at = max(due_at, ?2),
  last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where perdure.alarm_items.id in (select value from json_each(l.ids))), last_attempt_at)
where id = ?3

-- name: AlarmMove
-- An alarm that was attempted already, or recurs, keeps its original time.
update perdure.alarm_items
set occurs_at = iif(attempt = 0 and every_us is null and cron is null, ?1, occurs_at), due_at = ?1
where id = ?2

-- name: AlarmFire
update perdure.alarm_items
set occurs_at = min(occurs_at, ?1), due_at = ?1
where id = ?2

-- name: AlarmChosen
select h.id
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
{where}
order by h.due_at, h.actor_type, h.actor_id, h.alarm_id
limit {value}{skip}

-- name: AlarmRemove
-- Removes alarms, in any status, and revokes the claims of running alarms.
insert into perdure.interrupts (id, token)
select h.id, (select l.token from perdure.leases l where h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1) as held
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where {which} and h.dead is null and r.id is null and held is not null
on conflict do nothing
;
select coalesce(h.dead, case when r.id is null then 'running' else 'ready' end)
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where {which}
;
delete from perdure.ready
where (queue, suspect, priority, due_at, id) in (
  select h.queue, s.value, h.priority, h.due_at, h.id
  from perdure.alarm_items h, json_each('[0, 1]') s
  where {which}
)
;
delete from perdure.alarm_items as h
where {which}

-- name: AlarmCount
select coalesce(h.dead, case when r.id is null then 'running' when h.attempt > 0 then 'retrying' when h.due_at > {now} then 'scheduled' else 'ready' end), count(*)
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
{where}
group by 1
