-- For Galera clusters, on which the row locks of a node are not known to the others.
-- Every transaction that changes or locks rows increments fence, so that two of them on
-- different nodes conflict. turn names the process for which the others wait until
-- turn_until, because its transactions were overtaken.
-- MySQL commits with every DDL statement: each one can run again.

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_clock' and column_name = 'fence'
), 'alter table perdure_outbox_clock add column fence bigint not null default 0', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_clock' and column_name = 'turn'
), 'alter table perdure_outbox_clock add column turn varchar(64)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_outbox_clock' and column_name = 'turn_until'
), 'alter table perdure_outbox_clock add column turn_until datetime(6)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

-- Guards of rows that a transaction has only locked, by a hash of their ids. Only clusters
-- have rows here.
create table if not exists perdure_guards (
  slot int primary key,
  seq bigint not null
) engine=InnoDB default character set utf8mb4 collate {collation};
