-- Consumers that a handler serves: a lease, so that one process handles their entries at a
-- time, the retries of a failing entry, and dead letters. token, worker and lease_expires_at
-- are the lease; worker stays after it. attempts and crashes count those of the first entry after the position.
-- batch_limit is the largest batch after a failure, retry_at the time of the next attempt,
-- error that of the last one. stopped: the consumer waits for an operator.
-- MySQL commits with every DDL statement: each one can run again.

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'token'
), 'alter table perdure_outbox_consumers add column token varchar(64)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'worker'
), 'alter table perdure_outbox_consumers add column worker varchar(256)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'lease_expires_at'
), 'alter table perdure_outbox_consumers add column lease_expires_at datetime(6)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'attempts'
), 'alter table perdure_outbox_consumers add column attempts int not null default 0', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'crashes'
), 'alter table perdure_outbox_consumers add column crashes int not null default 0', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'batch_limit'
), 'alter table perdure_outbox_consumers add column batch_limit int', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'retry_at'
), 'alter table perdure_outbox_consumers add column retry_at datetime(6)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'error'
), 'alter table perdure_outbox_consumers add column error longtext', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_consumers' and column_name = 'stopped'
), 'alter table perdure_outbox_consumers add column stopped tinyint not null default 0', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

-- Dead letters of consumers: copies of the entries, because retention may remove those.
-- due_at is the time of the next attempt, if an operator has retried it.
-- outbox_dead_created_idx serves the list of dead letters, outbox_dead_due_idx the claim of
-- retried ones.
create table if not exists perdure_outbox_dead (
  consumer varchar(128) not null,
  versionstamp binary(12) not null,
  unit_id varchar(128) not null,
  payload longtext not null,
  ref_map longtext,
  entry_created_at datetime(6) not null,
  status varchar(16) not null check (status in ('failed', 'quarantined', 'retrying')),
  error longtext not null,
  attempts int not null,
  due_at datetime(6),
  created_at datetime(6) not null,
  primary key (consumer, versionstamp),
  key outbox_dead_created_idx (entry_created_at, consumer, versionstamp),
  key outbox_dead_due_idx (consumer, status, due_at)
) engine=InnoDB default character set utf8mb4 collate {collation};
