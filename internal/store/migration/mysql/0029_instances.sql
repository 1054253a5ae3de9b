-- Durable state machines. They share the tables of due and of running work with hooks:
-- ready, leases, interrupts and attempts. A live instance is in exactly one place: ready, a
-- lease, waiting, barriers, partition_waiting or unrouted. A finished one has a row in
-- finished.
-- MySQL commits with every DDL statement: each one can run again.

-- Attempts were those of hooks only. MySQL keeps the check of a column apart from the
-- column, under a name that it has made; MariaDB drops it with the definition.
set @perdure_step = if(exists(
  select 1
  from information_schema.table_constraints
  where constraint_schema = database() and table_name = 'perdure_attempts' and constraint_name = 'perdure_attempts_chk_1'
), 'alter table perdure_attempts drop check perdure_attempts_chk_1', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

alter table perdure_attempts modify column kind varchar(16) not null;

-- instances_parent_idx serves a parent that reads its children, and the cascade of a cancel;
-- instances_fsm_idx lists of one machine, newest first.
create table if not exists perdure_instances (
  id varchar(36) primary key,
  fsm varchar(128) not null,
  version int not null,
  step varchar(128) not null,
  state longtext not null,
  queue varchar(300) not null,
  priority smallint not null,
  attempt int not null default 0,
  failures int not null default 0,
  crashes int not null default 0,
  batch_limit int,
  awaits longtext,
  keeps tinyint not null default 0,
  seen longtext,
  timed_out tinyint not null default 0,
  fanout int not null default 0,
  dropped longtext,
  parent_id varchar(36),
  parent_fanout int,
  ordinal int,
  partition_key varchar(512),
  unique_name varchar(128),
  unique_key varchar(512),
  unique_scope smallint not null default 0,
  due_at datetime(6) not null,
  deadline_at datetime(6),
  error longtext,
  trace text,
  created_at datetime(6) not null,
  awaited longtext,
  rerun tinyint not null default 0,
  cancel_reason longtext,
  wait longtext,
  key instances_parent_idx (parent_id, parent_fanout, ordinal),
  key instances_fsm_idx (fsm, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- dead tells dead letters from the others: an index cannot have a condition here.
-- finished_at_idx serves retention.
create table if not exists perdure_finished (
  id varchar(36) primary key,
  status varchar(16) not null check (status in ('done', 'stopped', 'failed', 'cancelled', 'quarantined')),
  result longtext,
  error longtext,
  state longtext,
  ended_by varchar(36),
  finished_at datetime(6) not null,
  dead tinyint as (case when status in ('failed', 'quarantined') then 1 else 0 end) stored,
  key finished_at_idx (dead, finished_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Instances that wait for a signal. names is a JSON array. waiting_deadline_idx serves
-- timeouts.
create table if not exists perdure_waiting (
  id varchar(36) primary key,
  names longtext not null,
  deadline_at datetime(6),
  key waiting_deadline_idx (deadline_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- received says that a step was given the signal. signals_target_idx serves the inbox of an
-- instance.
create table if not exists perdure_signals (
  seq bigint auto_increment primary key,
  target_id varchar(36) not null,
  name varchar(128) not null,
  payload longtext not null,
  created_at datetime(6) not null,
  received tinyint not null default 0,
  key signals_target_idx (target_id, seq)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The keys of signals that were delivered, remembered until the instance is removed.
create table if not exists perdure_signal_keys (
  target_id varchar(36) not null,
  name varchar(128) not null,
  dedup_key varchar(512) not null,
  primary key (target_id, name, dedup_key)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Parents that wait for the children of one fan-out. cancel_rest says that the children
-- that are left when the wait ends are cancelled. barriers_deadline_idx serves the deadlines
-- of joins.
create table if not exists perdure_barriers (
  parent_id varchar(36) primary key,
  fanout int not null,
  pending int not null,
  until int not null default 0,
  deadline_at datetime(6),
  cancel_rest tinyint not null default 0,
  key barriers_deadline_idx (deadline_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- One row for each partition key that has live instances: who is at its head, and the
-- number of the last in its queue. Its lock orders those who start.
create table if not exists perdure_partition_heads (
  `key` varchar(512) primary key,
  head varchar(36) not null,
  tail bigint not null default 0
) engine=InnoDB default character set utf8mb4 collate {collation};

-- partition_waiting_id_key finds the row of one instance without a lock on the others.
create table if not exists perdure_partition_waiting (
  `key` varchar(512) not null,
  seq bigint not null,
  id varchar(36) not null,
  primary key (`key`, seq),
  unique key partition_waiting_id_key (id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Keys that are occupied. A row is removed when its instance leaves its scope.
create table if not exists perdure_uniques (
  name varchar(128) not null,
  `key` varchar(512) not null,
  id varchar(36) not null,
  primary key (name, `key`)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Instances that must end by a time.
create table if not exists perdure_deadlines (
  at datetime(6) not null,
  id varchar(36) not null,
  primary key (at, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Instances that no process could run that claimed them: it does not know the machine, or
-- not the step. Empty step: the machine.
create table if not exists perdure_unrouted (
  queue varchar(300) not null,
  fsm varchar(128) not null,
  version int not null,
  step varchar(128) not null default '',
  id varchar(36) not null,
  primary key (queue, fsm, version, step, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- schedules_due_idx finds due schedules without a lock on the others.
create table if not exists perdure_schedules (
  name varchar(128) primary key,
  fsm varchar(128) not null,
  version int not null,
  spec longtext not null,
  next_at datetime(6),
  last_at datetime(6),
  paused tinyint not null default 0,
  updated_at datetime(6) not null,
  key schedules_due_idx (paused, next_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The machines that processes know, so that tools can show and start them.
create table if not exists perdure_definitions (
  fsm varchar(128) not null,
  version int not null,
  first_step varchar(128) not null,
  queue varchar(300) not null,
  steps longtext not null,
  `schema` longtext,
  updated_at datetime(6) not null,
  cancel_step varchar(128),
  primary key (fsm, version)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- State machines whose steps are HTTP endpoints. The secrets that sign what is said to them
-- lie apart from the spec, sealed where there are keys.
create table if not exists perdure_remote_definitions (
  fsm varchar(128) not null,
  version int not null,
  spec longtext not null,
  secrets longtext not null,
  created_at datetime(6) not null,
  updated_at datetime(6) not null,
  primary key (fsm, version)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- What the steps of instances came to, of machines that keep their history. next is the
-- step that follows, if one does.
create table if not exists perdure_transitions (
  instance_id varchar(36) not null,
  seq bigint auto_increment,
  step varchar(128) not null,
  outcome varchar(16) not null check (outcome in ('next', 'replay', 'await', 'spawn', 'done', 'stop', 'fail', 'rerun', 'cancel')),
  next varchar(128),
  attempt int not null,
  crashes int not null,
  error longtext,
  worker varchar(128) not null,
  began_at datetime(6) not null,
  ended_at datetime(6) not null,
  primary key (instance_id, seq),
  unique key transitions_seq_key (seq)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Children that must be cancelled or reopened, of one parent and from the first to the last
-- of these fan-outs. A row is removed when no child is left. Any process continues the work.
-- kind is end if the parent has ended, cancel if it continues without these children, and
-- reopen if its end was taken back. root_id is the instance whose cancellation, deadline or
-- retry began this. after_fanout and after_ordinal are the last child that was handled in
-- this pass. A process that is not working on the row takes it over at due_at.
-- tree_ends_root_idx serves callers that wait for the end of one tree.
create table if not exists perdure_tree_ends (
  seq bigint auto_increment primary key,
  parent_id varchar(36) not null,
  first_fanout int not null,
  last_fanout int not null,
  kind varchar(16) not null check (kind in ('end', 'cancel', 'reopen')),
  root_id varchar(36) not null,
  reason longtext not null,
  after_fanout int,
  after_ordinal int,
  due_at datetime(6) not null,
  created_at datetime(6) not null,
  unique key tree_ends_parent_key (parent_id, kind, last_fanout),
  key tree_ends_due_idx (due_at),
  key tree_ends_root_idx (root_id, seq)
) engine=InnoDB default character set utf8mb4 collate {collation};
