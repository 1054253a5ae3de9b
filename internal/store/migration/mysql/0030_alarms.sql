-- Alarms of users, and the timers of actors. Alarms share the tables of due and of running
-- work: ready, leases, interrupts and attempts. An alarm that waits is in ready, one that
-- runs in a lease; a dead letter is in neither. perdure_alarms is a view of both.
-- MySQL commits with every DDL statement: each one can run again.
--
-- Ids are binary: an entry of an index has at most 3072 bytes, and a character of a text
-- counts as four of them.

-- actor_type and actor_id are empty if the alarm belongs to no actor. dead is the status of
-- a dead letter. due_at is the time at which the alarm fires or is retried, occurs_at the
-- time that it is for. generation is how often it was scheduled. every_us, cron, zone,
-- base_at, missed, missed_cap and caught_up are those of recurring alarms. attempt counts
-- attempts that failed. logged is 1 if attempts are recorded. is_dead tells dead letters
-- from the others: an index cannot have a condition here. alarm_items_due_idx serves lists,
-- alarm_items_dead_idx the list of dead letters and their retention.
create table if not exists perdure_alarm_items (
  id varchar(36) primary key,
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  alarm_id varbinary(512) not null,
  type varchar(128) not null,
  queue varchar(300) not null,
  dead varchar(16) check (dead in ('failed', 'quarantined')),
  priority smallint not null,
  due_at datetime(6) not null,
  occurs_at datetime(6) not null,
  sequence bigint not null,
  generation bigint not null,
  payload longtext not null,
  every_us bigint,
  cron text,
  zone text,
  base_at datetime(6),
  missed varchar(16) check (missed in ('skip', 'once', 'all')),
  missed_cap int,
  caught_up int not null default 0,
  policy text not null,
  max_attempts int not null,
  attempt int not null default 0,
  crashes int not null default 0,
  batch_limit int,
  error longtext,
  webhook text,
  trace text,
  created_at datetime(6) not null,
  last_attempt_at datetime(6),
  logged tinyint not null default 0,
  is_dead tinyint as (case when dead is null then 0 else 1 end) stored,
  unique key alarm_items_key (actor_type, actor_id, alarm_id),
  key alarm_items_due_idx (due_at, actor_type, actor_id, alarm_id),
  key alarm_items_dead_idx (is_dead, due_at, actor_type, actor_id, alarm_id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The timers of actors. They are fired in the transaction of the actor's step. occurs_at is
-- the time that a timer is for, once it was postponed because a process could not move its
-- actor. sequence orders timers that are due at the same time. path and generation name the
-- actor in the tree that it is for. timers_due_idx serves the timers that are due, of the
-- types of actors that a process knows, timers_next_idx the lists of what comes next and of
-- dead letters, timers_suspect_idx the claim of suspects.
create table if not exists perdure_timers (
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  alarm_id varbinary(512) not null,
  type text not null,
  status varchar(16) not null default 'pending' check (status in ('pending', 'quarantined')),
  due_at datetime(6) not null,
  occurs_at datetime(6),
  sequence bigint not null,
  payload longtext,
  path text,
  generation bigint,
  crashes int not null default 0,
  batch_limit int,
  error longtext,
  created_at datetime(6) not null,
  is_suspect tinyint as (case when batch_limit is null then 0 else 1 end) stored,
  primary key (actor_type, actor_id, alarm_id),
  key timers_due_idx (actor_type, status, due_at, actor_id),
  key timers_next_idx (status, due_at, actor_type, actor_id, alarm_id),
  key timers_suspect_idx (is_suspect, due_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

create or replace sql security invoker view perdure_alarms as
select a.actor_type, a.actor_id, _utf8mb4'custom' collate {collation} as kind, a.alarm_id, a.type,
  coalesce(a.dead, case when r.id is null then 'processing' else 'pending' end) as status,
  a.priority, a.due_at, a.occurs_at, a.sequence, a.payload, null as path, a.generation, a.every_us, a.cron, a.zone, a.base_at, a.missed, a.missed_cap, a.caught_up,
  a.policy, a.max_attempts, a.attempt as attempts, a.crashes, a.batch_limit, a.error, a.webhook, a.trace, a.created_at, a.last_attempt_at
from perdure_alarm_items a
left join perdure_ready r on r.queue = a.queue and r.suspect = case when a.batch_limit is null then 0 else 1 end and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id
union all
select d.actor_type, d.actor_id, _utf8mb4'machine' collate {collation}, d.alarm_id, d.type, d.status,
  0, d.due_at, d.occurs_at, d.sequence, d.payload, d.path, d.generation, null, null, null, null, null, null, 0,
  null, null, 0, d.crashes, d.batch_limit, d.error, null, null, d.created_at, null
from perdure_timers d;
