-- Outcomes of many tasks share a transaction. The worker's role gets no new right: it may
-- lock tasks whose tokens it has, and call for each the functions that it may call for one.

set role perdure_owner;

-- Locks the tasks that are held, in the order of their ids, and returns them.
create function queues.hold_tasks(task_ids bigint[], tokens uuid[]) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
  select t.task_id
  from unnest(task_ids, tokens) as claim (task_id, token)
  join queues.task t on t.task_id = claim.task_id and t.token = claim.token
  order by t.task_id
  for update of t;
end $$;

-- Runs a function for each task that is held, and returns the tasks that are, with what
-- their functions have returned and the microseconds that they took. A task without a
-- function is only locked. A trace is that of what the function enqueues. It is security
-- invoker: it does nothing that its caller may not do. internal.run_function checks a
-- function that is run for several tasks once. If a function fails, all do.
create function queues.run_tasks(task_ids bigint[], tokens uuid[], function_names text[], payloads jsonb[], traces text[])
returns table (task_id bigint, result jsonb, took bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  held bigint[] := array(select queues.hold_tasks(task_ids, tokens));
  checked text[] := '{}';
  claim record;
  began timestamptz;
begin
  for claim in
    select c.*
    from unnest(task_ids, tokens, function_names, payloads, traces) as c (id, token, function_name, payload, trace)
    where c.id = any (held)
    order by c.id
  loop
    task_id := claim.id;
    result := null;
    took := 0;
    if claim.function_name is not null then
      began := clock_timestamp();
      perform set_config('perdure.task_id', claim.id::text, true), set_config('perdure.task_token', claim.token::text, true),
        set_config('perdure.trace', coalesce(claim.trace, ''), true);
      if claim.function_name = any (checked) then
        execute format('select coalesce(%I.%I($1), ''{}'')', split_part(claim.function_name, '.', 1), split_part(claim.function_name, '.', 2))
          into result using coalesce(claim.payload, '{}');
      else
        result := internal.run_function(claim.function_name, claim.payload);
        checked := checked || claim.function_name;
      end if;
      took := extract(epoch from clock_timestamp() - began) * 1000000;
    end if;
    return next;
  end loop;
end $$;

grant execute on function queues.hold_tasks(bigint[], uuid[]), queues.run_tasks(bigint[], uuid[], text[], jsonb[], text[]) to perdure_worker;

reset role;
