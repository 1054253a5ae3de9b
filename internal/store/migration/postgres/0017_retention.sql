-- Serve the retention of dead letters, oldest end first.
create index finished_dead_at_idx on perdure.finished (finished_at) where status in ('failed', 'quarantined');
create index hooks_dead_at_idx on perdure.hooks (finished_at) where status in ('failed', 'quarantined');

-- Serves the list of instances that a step has stopped.
create index finished_stopped_idx on perdure.finished (id) where status = 'stopped';

set role perdure_owner;

-- Serves the retention of dead letters.
create index task_dead_at_idx on queues.task (finished_at) where status in ('failed', 'quarantined');

-- Removes tasks that failed or were quarantined some time ago, at least an hour, up
-- to a number.
create function queues.sweep_dead(keep interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n bigint;
begin
  with old as (
    select t.task_id
    from queues.task t
    where t.status in ('failed', 'quarantined') and t.finished_at <= queues.now() - greatest(keep, interval '1 hour')
    order by t.finished_at
    limit 1000
    for update skip locked
  )
  delete from queues.task t
  using old
  where t.task_id = old.task_id;
  get diagnostics n = row_count;
  return n;
end $$;

grant execute on function queues.sweep_dead(interval) to perdure_worker;

reset role;
