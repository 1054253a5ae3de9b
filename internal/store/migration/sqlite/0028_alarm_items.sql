-- Alarms of users use the tables that hooks and instances have for what is due and what
-- runs: ready, leases and interrupts. An alarm that waits is in ready, one that runs in a
-- lease; a dead letter is in neither. The timers of actors are a table of their own.
-- perdure_alarms is a view of both.

-- One row for each alarm of users.
create table perdure_alarm_items (
  id text primary key,
  -- The actor that it belongs to, '' if it belongs to none.
  actor_type text not null,
  actor_id text not null,
  alarm_id text not null,
  type text not null,
  queue text not null,
  -- The status of a dead letter, null for others.
  dead text check (dead in ('failed', 'quarantined')),
  priority integer not null,
  -- When it fires or is tried again.
  due_at integer not null,
  -- The time that it is for, which a retry does not change.
  occurs_at integer not null,
  -- Is in the idempotency key of a tick. Later alarms have higher ones.
  sequence integer not null,
  -- How often it was scheduled.
  generation integer not null,
  payload text not null,
  -- Of recurring alarms: where the phase begins, how missed ticks are handled, and how
  -- many late ones were fired in a row.
  every_us integer,
  cron text,
  zone text,
  base_at integer,
  missed text check (missed in ('skip', 'once', 'all')),
  missed_cap integer,
  caught_up integer not null default 0,
  policy text not null,
  max_attempts integer not null,
  -- Attempts that failed.
  attempt integer not null default 0,
  crashes integer not null default 0,
  batch_limit integer,
  error text,
  -- The URL that is told of its outcomes.
  webhook text,
  trace text,
  created_at integer not null,
  last_attempt_at integer,
  -- Whether attempts are recorded.
  logged integer not null default 0,
  unique (actor_type, actor_id, alarm_id)
) strict;

-- Serves lists.
create index perdure_alarm_items_due_idx on perdure_alarm_items (due_at, actor_type, actor_id, alarm_id);

-- Serves the list of dead letters, their number and their retention.
create index perdure_alarm_items_dead_idx on perdure_alarm_items (due_at, actor_type, actor_id, alarm_id) where dead is not null;

-- The timers of actors. They are fired in the transaction of the actor's step.
create table perdure_timers (
  actor_type text not null,
  actor_id text not null,
  alarm_id text not null,
  type text not null,
  status text not null default 'pending' check (status in ('pending', 'quarantined')),
  due_at integer not null,
  -- The time that it is for, once it was postponed because a process could not move its
  -- actor.
  occurs_at integer,
  -- Orders timers that are due at the same time.
  sequence integer not null,
  payload text,
  -- The actor in the tree that it is for, and which one of those that had the path.
  path text,
  generation integer,
  crashes integer not null default 0,
  batch_limit integer,
  error text,
  created_at integer not null,
  primary key (actor_type, actor_id, alarm_id)
) strict;

-- Serves the timers that are due, of the types of actors that a process knows.
create index perdure_timers_due_idx on perdure_timers (actor_type, due_at, actor_id) where status = 'pending';

-- Serves what comes next.
create index perdure_timers_next_idx on perdure_timers (due_at, actor_type, actor_id, alarm_id) where status = 'pending';

-- Serves the list of dead letters, and how many there are.
create index perdure_timers_dead_idx on perdure_timers (due_at, actor_type, actor_id, alarm_id) where status = 'quarantined';

-- Serves the claim of suspects.
create index perdure_timers_suspect_idx on perdure_timers (due_at) where batch_limit is not null;

-- Ids are in the order in which alarms that are due at the same time are fired. An alarm
-- that a process ran when the tables changed is due when its lease would have ended: the
-- process cannot record its outcome any more.
insert into perdure_alarm_items (id, actor_type, actor_id, alarm_id, type, queue, dead, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempt, crashes, batch_limit, error, webhook, trace,
  created_at, last_attempt_at, logged)
select ids.prefix || printf('%012x', row_number() over (order by due_at, sequence)), actor_type, actor_id, alarm_id, type, 'alarm' || char(9) || type,
  case when status in ('failed', 'quarantined') then status end, priority,
  case when status = 'processing' then max(due_at, lease_expires_at) else due_at end, coalesce(occurs_at, due_at), sequence, coalesce(generation, 0), coalesce(payload, 'null'),
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, coalesce(policy, '{}'), coalesce(max_attempts, 1), attempts, crashes, batch_limit, error, webhook, trace,
  created_at, last_attempt_at, logged
from perdure_alarms, (select '0000' || substr(r, 1, 4) || '-' || substr(r, 5, 4) || '-7000-8001-' as prefix from (select lower(hex(randomblob(4))) as r)) ids
where kind = 'custom';

insert into perdure_ready (queue, suspect, priority, due_at, id)
select queue, batch_limit is not null, priority, due_at, id
from perdure_alarm_items
where dead is null;

update perdure_attempts
set id = i.id, actor_type = '', actor_id = ''
from perdure_alarm_items i
where perdure_attempts.kind = 'alarm' and perdure_attempts.id = i.alarm_id and perdure_attempts.actor_type = i.actor_type and perdure_attempts.actor_id = i.actor_id;

insert into perdure_timers (actor_type, actor_id, alarm_id, type, status, due_at, occurs_at, sequence, payload, path, generation, crashes, batch_limit, error, created_at)
select actor_type, actor_id, alarm_id, type, case when status = 'quarantined' then status else 'pending' end, due_at, occurs_at, sequence, payload, path, generation, crashes, batch_limit, error, created_at
from perdure_alarms
where kind = 'machine';

drop table perdure_alarms;

-- Alarms end in many ways; what is recorded of them ends with them.
create trigger perdure_alarm_items_forget_attempts after delete on perdure_alarm_items when old.logged begin delete from perdure_attempts where kind = 'alarm' and id = old.id and actor_type = '' and actor_id = ''; end;

create view perdure_alarms as
select a.actor_type, a.actor_id, 'custom' as kind, a.alarm_id, a.type,
  coalesce(a.dead, (select 'pending' from perdure_ready r where r.queue = a.queue and r.suspect = (a.batch_limit is not null) and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id limit 1), 'processing') as status,
  a.priority, a.due_at, a.occurs_at, a.sequence, a.payload, null as path, a.generation, a.every_us, a.cron, a.zone, a.base_at, a.missed, a.missed_cap, a.caught_up,
  a.policy, a.max_attempts, a.attempt as attempts, a.crashes, a.batch_limit, a.error, a.webhook, a.trace, a.created_at, a.last_attempt_at
from perdure_alarm_items a
union all
select d.actor_type, d.actor_id, 'machine', d.alarm_id, d.type, d.status,
  0, d.due_at, d.occurs_at, d.sequence, d.payload, d.path, d.generation, null, null, null, null, null, null, 0,
  null, null, 0, d.crashes, d.batch_limit, d.error, null, null, d.created_at, null
from perdure_timers d;
