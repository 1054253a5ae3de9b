-- Actors: statecharts that live in the database. A process that moves an actor locks its
-- row. See 0030_alarms.sql for their timers.
-- MySQL commits with every DDL statement: each one can run again.

-- incarnation differs between two actors that had the same name one after the other.
-- machine is the version of the definition, sequence the number of steps that it has taken.
-- states are the active states by their paths, each between two line feeds. updated_at is
-- the time of its last step, which never goes back. is_dead tells actors that need an
-- operator from the others: an index cannot have a condition here. The indexes serve lists,
-- newest first.
create table if not exists perdure_actors (
  type varchar(128) not null,
  id varbinary(512) not null,
  incarnation varchar(64) not null,
  status varchar(16) not null check (status in ('active', 'done', 'error', 'stopped', 'quarantined')),
  machine bigint not null,
  sequence bigint not null,
  value longtext,
  states longtext not null,
  origin varchar(16) not null check (origin in ('spawn', 'import', 'fork')),
  caller_kind varchar(16) not null check (caller_kind in ('client', 'service', 'system')),
  caller_id varchar(512) not null,
  input longtext,
  reason longtext,
  created_at datetime(6) not null,
  updated_at datetime(6) not null,
  is_dead tinyint as (case when status in ('error', 'quarantined') then 1 else 0 end) stored,
  primary key (type, id),
  key actors_created_idx (created_at, type, id),
  key actors_type_idx (type, created_at, id),
  key actors_dead_idx (is_dead, created_at, type, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

create table if not exists perdure_snapshots (
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  sequence bigint not null,
  snapshot longtext not null,
  checksum varchar(128) not null,
  primary key (actor_type, actor_id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Complete states at certain steps, timers included. With the log after it, the oldest one
-- gives every later state again.
create table if not exists perdure_checkpoints (
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  sequence bigint not null,
  machine bigint not null,
  snapshot longtext not null,
  timers longtext not null,
  checksum varchar(128) not null,
  primary key (actor_type, actor_id, sequence)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- path and generation are those of the actor in the tree that a timer or a result was for.
-- said is what the actor emitted and logged. checksum is that of the snapshot after the
-- step. at is the time that the machine saw, recorded_at that of the record.
create table if not exists perdure_actor_log (
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  sequence bigint not null,
  kind varchar(32) not null,
  event longtext,
  caller_kind varchar(16),
  caller_id varchar(512),
  path text,
  generation bigint,
  `key` varchar(512),
  said longtext,
  value longtext,
  checksum varchar(128) not null,
  at datetime(6) not null,
  recorded_at datetime(6) not null,
  primary key (actor_type, actor_id, sequence)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The idempotency keys of events, and the step that each one led to.
create table if not exists perdure_actor_keys (
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  `key` varbinary(512) not null,
  sequence bigint not null,
  created_at datetime(6) not null,
  primary key (actor_type, actor_id, `key`),
  key actor_keys_created_idx (created_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Stored statecharts. A name's versions are numbered from 1.
create table if not exists perdure_machines (
  name varchar(128) not null,
  version bigint not null,
  document longtext not null,
  options longtext not null,
  checksum varchar(128) not null,
  created_at datetime(6) not null,
  primary key (name, version)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The actors that were imported from an earlier system. It stays when they are deleted:
-- nothing is imported twice.
create table if not exists perdure_imports (
  actor_type varchar(128) not null,
  actor_id varbinary(512) not null,
  imported_at datetime(6) not null,
  primary key (actor_type, actor_id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The timers that a process is about to fire. The transaction that fires them deletes the
-- row: one that is left when it expires is of a process that crashed. suspect is 1 if all
-- timers of the row are suspects. timers has the type and the id of the actor and the id of
-- the timer, for each of them.
create table if not exists perdure_firing (
  token varchar(64) primary key,
  worker varchar(128) not null,
  suspect tinyint not null,
  expires_at datetime(6) not null,
  timers longtext not null,
  key firing_expires_idx (expires_at)
) engine=InnoDB default character set utf8mb4 collate {collation};
