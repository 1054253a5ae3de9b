-- The snapshot of an actor is a part of its row: a step writes one row, and the statement
-- that locks an actor reads its snapshot. The two belong together: whether the snapshot is
-- that of the last step is checked when it is read. snapshot_sequence is the step after
-- which it was taken, checksum that of its text.
-- MySQL commits with every DDL statement: each one can run again.

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_actors' and column_name = 'snapshot'
), 'alter table perdure_actors add column snapshot longtext', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_actors' and column_name = 'snapshot_sequence'
), 'alter table perdure_actors add column snapshot_sequence bigint', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_actors' and column_name = 'checksum'
), 'alter table perdure_actors add column checksum varchar(128)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

set @perdure_step = if(exists (
  select 1
  from information_schema.tables
  where table_schema = database() and table_name = 'perdure_snapshots'
), 'update perdure_actors a join perdure_snapshots s on s.actor_type = a.type and s.actor_id = a.id set a.snapshot = s.snapshot, a.snapshot_sequence = s.sequence, a.checksum = s.checksum', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

drop table if exists perdure_snapshots;

-- A pass over due timers records their actors, not each timer. A pass over suspects still
-- records each timer. claimed_at is when the pass began: it fires the timers that were due
-- then.
set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_firing' and column_name = 'claimed_at'
), 'alter table perdure_firing add column claimed_at datetime(6)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

update perdure_firing set claimed_at = expires_at where claimed_at is null;
