-- A hash of the event and its caller, so that a key that is used for another event is refused. Null:
-- an older version of the program stored the key.
-- MySQL commits with every DDL statement: each one can run again.
set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_actor_keys' and column_name = 'digest'
), 'alter table perdure_actor_keys add column digest varchar(64)', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;
