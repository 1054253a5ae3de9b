-- Serves the list of work that fails now: the newest attempts that did not succeed. Only failures
-- write to the table.
set @perdure_step = if(exists(
  select 1
  from information_schema.statistics
  where table_schema = database() and table_name = 'perdure_attempts' and index_name = 'attempts_ended_idx'
), 'do 0', 'create index attempts_ended_idx on perdure_attempts (ended_at)');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;
