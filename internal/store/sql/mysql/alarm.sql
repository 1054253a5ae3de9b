-- Alarms of users, on MySQL. Tests pass the time as now; otherwise now is null and the
-- server's clock decides. A set is passed as JSON, with an array for each row. A line with
-- only a semicolon separates the statements of one name. Values are numbered; see bind.go.
--
-- A waiting alarm has a row in ready, a running alarm is in a lease, and a dead letter has
-- its status in the column dead. An outcome names the generation that was claimed: if the
-- alarm was rescheduled while it ran, the outcome does not change it.
--
-- A statement that changes rows also locks the rows that it reads from other tables, unless
-- it is an insert. The rows to change are therefore kept in a session variable, and joins
-- that change rows fix their order. A variable is always set from an aggregate: without
-- rows, it becomes null instead of keeping its old value.

-- Parts of the statements in family.sql and doctor.sql.

-- name: Alarm.Public
case when h.actor_type = '' then h.alarm_id else concat(h.actor_type, '/', h.actor_id, '/', h.alarm_id) end

-- name: Alarm.Released
 and h.dead is null

-- name: Alarm.Returned
h.logged = 1,

-- name: AlarmGet
select h.id, h.actor_type, h.actor_id, h.alarm_id, h.type, h.priority, h.due_at, h.occurs_at, h.sequence, h.generation, h.payload,
  h.every_us, h.cron, h.zone, h.base_at, h.missed, h.missed_cap, h.caught_up, h.policy, h.max_attempts, h.attempt, h.crashes, h.error,
  h.webhook, h.trace, h.created_at, coalesce(h.dead, case when r.id is null then 'running' else 'ready' end),
  (select l.worker from perdure.leases l where h.dead is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1),
  (select l.expires_at from perdure.leases l where h.dead is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1),
  coalesce((select l.claimed_at from perdure.leases l where h.dead is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1), h.last_attempt_at)
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.actor_type = ? and h.actor_id = ? and h.alarm_id = ?

-- name: AlarmFind
-- Locks an alarm.
select id
from perdure.alarm_items force index (alarm_items_key)
where actor_type = ? and actor_id = ? and alarm_id = ?
for update

-- name: AlarmInsert
-- Inserts an alarm, or locks the existing alarm with the same key.
insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, priority, sequence, payload, every_us, cron, zone, missed, missed_cap,
  policy, max_attempts, webhook, trace, generation, due_at, occurs_at, base_at, created_at)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 1, t.at_due, t.at_due, case when ?10 is not null then t.at_due end, t.at_now
from (
  select coalesce(cast(?19 as datetime(6)), utc_timestamp(6)) as at_now,
    coalesce(cast(?20 as datetime(6)), coalesce(cast(?19 as datetime(6)), utc_timestamp(6)) + interval ?21 microsecond) as at_due
) t
on duplicate key update generation = perdure.alarm_items.generation
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.alarm_items
where id = ?1

-- name: AlarmReplace
-- Replaces the existing alarm with the key of a new one. The existing alarm is locked. A
-- recurring alarm with the same ticks keeps its place. A running alarm stays in its lease:
-- its outcome makes it ready. The second statement waits for a claim that is not committed
-- yet, and counts the row of ready that is left.
select json_arrayagg(json_array(h.id, h.queue, h.priority, h.due_at, case when h.dead is null then 0 else 1 end,
  case when (?10 is not null or ?11 is not null) and h.type = ?5 and h.dead is null and h.every_us <=> ?10 and h.cron <=> ?11 and h.zone <=> ?12
    and h.base_at <=> coalesce(cast(?22 as datetime(6)), h.base_at) then 1 else 0 end)) into @perdure_alarm
from perdure.alarm_items h force index (alarm_items_key)
where h.actor_type = ?2 and h.actor_id = ?3 and h.alarm_id = ?4 and h.id <> ?1
for update
;
select count(*) into @perdure_waits
from json_table(@perdure_alarm, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', queue varchar(300) collate {collation} path '$[1]', priority smallint path '$[2]', due_at datetime(6) path '$[3]'
)) o
straight_join (select 0 as suspect union all select 1) s
straight_join perdure.ready r force index (primary) on r.queue = o.queue and r.suspect = s.suspect and r.priority = o.priority and r.due_at = o.due_at and r.id = o.id
for update
;
delete r
from json_table(@perdure_alarm, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', queue varchar(300) collate {collation} path '$[1]', priority smallint path '$[2]', due_at datetime(6) path '$[3]'
)) o
straight_join (select 0 as suspect union all select 1) s
straight_join perdure.ready r force index (primary) on r.queue = o.queue and r.suspect = s.suspect and r.priority = o.priority and r.due_at = o.due_at and r.id = o.id
;
update json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', was_dead tinyint path '$[4]', same tinyint path '$[5]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id
set h.type = ?5, h.queue = ?6, h.priority = ?7, h.payload = ?9, h.missed = ?13, h.missed_cap = ?14, h.policy = ?15, h.max_attempts = ?16, h.webhook = ?17, h.trace = ?18,
  h.every_us = ?10, h.cron = ?11, h.zone = ?12, h.dead = null,
  h.sequence = case when o.same = 1 then h.sequence else ?8 end,
  h.generation = h.generation + 1 - o.same,
  h.due_at = case when o.same = 1 then h.due_at else coalesce(cast(?20 as datetime(6)), coalesce(cast(?19 as datetime(6)), utc_timestamp(6)) + interval ?21 microsecond) end,
  h.occurs_at = case when o.same = 1 then h.occurs_at else coalesce(cast(?20 as datetime(6)), coalesce(cast(?19 as datetime(6)), utc_timestamp(6)) + interval ?21 microsecond) end,
  h.base_at = case when o.same = 1 then h.base_at when ?10 is not null then coalesce(cast(?20 as datetime(6)), coalesce(cast(?19 as datetime(6)), utc_timestamp(6)) + interval ?21 microsecond) end,
  h.caught_up = case when o.same = 1 then h.caught_up else 0 end,
  h.attempt = case when o.same = 1 then h.attempt else 0 end,
  h.error = case when o.same = 1 then h.error end,
  h.created_at = case when o.same = 1 then h.created_at else coalesce(cast(?19 as datetime(6)), utc_timestamp(6)) end,
  h.crashes = case when o.same = 1 or o.was_dead = 0 and @perdure_waits = 0 then h.crashes else 0 end,
  h.batch_limit = case when o.same = 1 or o.was_dead = 0 and @perdure_waits = 0 then h.batch_limit end
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, case when h.batch_limit is null then 0 else 1 end, h.priority, h.due_at, h.id
from json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', was_dead tinyint path '$[4]')) o
straight_join perdure.alarm_items h on h.id = o.id
where o.was_dead = 1 or @perdure_waits > 0

-- name: AlarmDone
delete a
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', generation bigint path '$[1]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id and h.generation = o.generation and h.logged = 1
straight_join perdure.attempts a force index (primary) on a.kind = 'alarm' and a.id = h.id and a.actor_type = '' and a.actor_id = ''
;
delete h
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', generation bigint path '$[1]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id and h.generation = o.generation

-- name: AlarmAdvance
-- A recurring alarm waits for its next tick, in microseconds since 1970.
update json_table(?1, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', generation bigint path '$[1]', next bigint path '$[2]', caught_up int path '$[3]', error longtext path '$[4]'
)) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id and h.generation = o.generation
set h.due_at = cast('1970-01-01 00:00:00' as datetime(6)) + interval o.next microsecond,
  h.occurs_at = cast('1970-01-01 00:00:00' as datetime(6)) + interval o.next microsecond,
  h.caught_up = o.caught_up, h.attempt = 0, h.crashes = 0, h.batch_limit = null, h.error = o.error,
  h.logged = case when o.error is null then h.logged else 1 end

-- name: AlarmTried
-- Records failed attempts. Without a delay, the attempt was the last one.
update json_table(?1, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', generation bigint path '$[1]', error longtext path '$[2]', took bigint path '$[3]', delay bigint path '$[4]'
)) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id and h.generation = o.generation
set h.attempt = h.attempt + 1, h.batch_limit = null, h.error = o.error, h.logged = 1,
  h.last_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond,
  h.due_at = coalesce(coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond, h.due_at),
  h.dead = case when o.delay is null then 'failed' end

-- name: AlarmYield
-- Alarms that were rescheduled while they ran: their crashes are forgiven.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', generation bigint path '$[1]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id and h.generation <> o.generation
set h.crashes = 0, h.batch_limit = null

-- name: AlarmBury
-- Keeps a permanently failed tick as a separate dead letter: the alarm continues.
insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, dead, priority, due_at, occurs_at, sequence, generation, payload,
  policy, max_attempts, attempt, crashes, error, webhook, trace, created_at, last_attempt_at, logged)
select ?1, h.actor_type, h.actor_id, ?2, h.type, h.queue, 'failed', h.priority, h.due_at, h.occurs_at, h.sequence, 1, ?3,
  h.policy, h.max_attempts, h.attempt + 1, h.crashes, ?4, h.webhook, h.trace, h.created_at, h.last_attempt_at, 1
from perdure.alarm_items h
where h.id = ?5 and h.generation = ?6
on duplicate key update attempt = values(attempt), error = values(error), logged = 1

-- name: AlarmAttemptCopy
-- Copies the attempts of a tick to its dead letter.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'alarm', t.buried, t.seq, t.attempt, t.outcome, t.error, t.worker, t.began_at, t.ended_at
from (
  select b.id as buried, t.seq, t.attempt, t.outcome, t.error, t.worker, t.began_at, t.ended_at
  from perdure.alarm_items a
  straight_join perdure.alarm_items b on b.actor_type = a.actor_type and b.actor_id = a.actor_id and b.alarm_id = ?1
  straight_join perdure.attempts t on t.kind = 'alarm' and t.id = a.id and t.actor_type = '' and t.actor_id = ''
  where a.id = ?3 and a.generation = ?4
  order by t.seq desc
  limit ?2
) t
on duplicate key update kind = perdure.attempts.kind

-- name: AlarmQuarantine
-- The leases are read first, because an update would lock all of them.
select max(l.claimed_at) into @perdure_claimed
from perdure.leases l
where locate(?3, l.ids) > 0
;
update perdure.alarm_items
set dead = 'quarantined', crashes = crashes + 1, batch_limit = null, error = ?1, logged = 1, due_at = greatest(due_at, coalesce(cast(?2 as datetime(6)), utc_timestamp(6))),
  last_attempt_at = coalesce(cast(@perdure_claimed as datetime(6)), last_attempt_at)
where id = ?3

-- name: AlarmMove
-- An alarm that was attempted already, or recurs, keeps its original time.
update perdure.alarm_items
set occurs_at = case when attempt = 0 and every_us is null and cron is null then cast(?1 as datetime(6)) else occurs_at end, due_at = cast(?1 as datetime(6))
where id = ?2

-- name: AlarmSkip
update perdure.alarm_items
set due_at = cast(?1 as datetime(6)), occurs_at = cast(?1 as datetime(6)), caught_up = 0, attempt = 0, crashes = 0, batch_limit = null, error = null
where id = ?2

-- name: AlarmRevive
-- Restarts dead letters, which are locked: they are due now, and no attempts are counted.
update json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id and h.dead is not null
set h.dead = null, h.attempt = 0, h.crashes = 0, h.batch_limit = null, h.due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))

-- name: AlarmChosen
-- Locks the alarms that meet conditions. They are found before they are locked: a locking
-- scan would also lock the alarms that it only passes.
select a.id
from (
  select h.id
  from perdure.alarm_items h
  left join perdure.ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
  {where}
  order by h.due_at, h.actor_type, h.actor_id, h.alarm_id
  limit {value}
) o
straight_join perdure.alarm_items a force index (primary) on a.id = o.id
for update{skip}

-- name: AlarmRemove
-- Removes alarms that are locked, in any status, and revokes the claims of running alarms.
-- The second statement locks the rows of ready, and waits for a claim that is not committed
-- yet: the third then sees its lease. It also locks an alarm that was scheduled after the
-- earlier lock found nothing.
select json_arrayagg(h.id) into @perdure_alarm
from perdure.alarm_items h
where {which}
;
select json_arrayagg(json_array(h.id, h.dead, case when r.id is null then 0 else 1 end)) into @perdure_alarm
from json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id
left join perdure.ready r force index (primary)
  on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
for update
;
insert into perdure.interrupts (id, token)
select o.id, l.token
from json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', dead varchar(16) collate {collation} path '$[1]', waits tinyint path '$[2]')) o
straight_join perdure.leases l on l.seq = (select max(n.seq) from perdure.leases n where locate(o.id, n.ids) > 0)
where o.dead is null and o.waits = 0
on duplicate key update id = perdure.interrupts.id
;
select coalesce(o.dead, case when o.waits = 0 then 'running' else 'ready' end)
from json_table(@perdure_alarm, '$[*]' columns (dead varchar(16) collate {collation} path '$[1]', waits tinyint path '$[2]')) o
;
delete r
from json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id
straight_join perdure.ready r force index (primary)
  on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
;
delete a
from json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.attempts a force index (primary) on a.kind = 'alarm' and a.id = o.id and a.actor_type = '' and a.actor_id = ''
;
delete h
from json_table(@perdure_alarm, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.alarm_items h force index (primary) on h.id = o.id

-- name: AlarmsDead
-- Dead letters that were due long ago. A quarantined recurring alarm is kept: it is also a
-- schedule.
select id
from perdure.alarm_items force index (alarm_items_dead_idx)
where is_dead = 1 and due_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond and every_us is null and cron is null
order by due_at
limit ?3
for update skip locked

-- name: AlarmCount
select coalesce(h.dead, case when r.id is null then 'running' when h.attempt > 0 then 'retrying' when h.due_at > {now} then 'scheduled' else 'ready' end), count(*)
from perdure.alarm_items h
left join perdure.ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
{where}
group by 1
