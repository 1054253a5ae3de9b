-- Bounds for a worker that is not trusted: the size of what it stores, the length of
-- its transactions, the number of its connections.

-- A role can change its own timeouts, so they bind only a worker that respects them.
-- The owner, who can end sessions of the worker, enforces a limit instead. The lint
-- tells if the user who migrates may not arrange that.
do $$
begin
  if not pg_has_role('perdure_owner', 'perdure_worker', 'usage') then
    grant perdure_worker to perdure_owner;
  end if;
exception when insufficient_privilege or unique_violation then
  null; -- another database was faster, or the lint tells
end $$;

-- The worker's connections must leave some to others. 100 was the limit of new roles,
-- whatever the server has. A limit that an operator has set stays.
do $$
declare
  most integer := current_setting('max_connections')::integer;
begin
  if (select rolconnlimit from pg_roles where rolname = 'perdure_worker') = 100 and most < 200 then
    execute format('alter role perdure_worker connection limit %s', greatest(most / 2, 1));
  end if;
exception when insufficient_privilege or internal_error then
  null; -- another database changes the role now, or the lint tells
end $$;

-- Large objects and records in the log, as in 0004: the functions that write to a large
-- object that is open.
do $$
declare
  name text;
begin
  for name in
    select p.oid::regprocedure::text
    from pg_proc p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.proname in ('lowrite', 'lo_truncate', 'lo_truncate64')
      and has_function_privilege('public', p.oid, 'execute')
  loop
    begin
      execute 'revoke execute on function ' || name || ' from public';
    exception when insufficient_privilege then
      null;
    end;
  end loop;
end $$;

set role perdure_owner;

-- The longest transaction of the worker. Replace the function to change the limit.
create function queues.transaction_limit() returns interval
language sql immutable
return interval '1 minute';

-- Ends sessions of the worker, in this database, whose transaction is older than the
-- limit, or that have not read for as long what the server sends them: they hold locks
-- on rows, and keep the server from removing old rows and notifications. Every worker
-- and every server calls it. A session cannot be ended twice.
create function queues.end_overdue_sessions() returns bigint
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select count(*) filter (where pg_terminate_backend(a.pid))
  from pg_stat_activity a
  where a.usename = 'perdure_worker' and a.datname = current_database() and a.pid <> pg_backend_pid()
    and pg_has_role(current_user, a.usesysid, 'usage')
    and least(a.xact_start, case when a.wait_event = 'ClientWrite' then a.state_change end) < clock_timestamp() - queues.transaction_limit()
$$;

-- The largest outcome, as text. Go has the same number: edge.DefaultMaxJSON.
create function queues.max_outcome_bytes() returns integer
language sql immutable
return 1048576;

-- Every outcome passes here, whatever function stores it.
create function queues.refuse_large_outcome() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if octet_length(new.outcome::text) > queues.max_outcome_bytes() then
    raise exception 'the outcome of task % has % bytes, more than %', new.task_id, octet_length(new.outcome::text), queues.max_outcome_bytes()
      using errcode = 'program_limit_exceeded';
  end if;
  return new;
end $$;

create trigger outcome_size before update of outcome on queues.task
for each row when (new.outcome is distinct from old.outcome and new.outcome is not null) execute function queues.refuse_large_outcome();

create trigger outcome_size_of_new before insert on queues.task
for each row when (new.outcome is not null) execute function queues.refuse_large_outcome();

-- The most errors of one task that are kept. Later ones are dropped.
create function queues.max_errors() returns integer
language sql immutable
return 10000;

create or replace function queues.append_error(task_id bigint, token uuid, error_message text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from queues.task t where t.task_id = append_error.task_id and t.token = append_error.token;
  if not found then
    return false;
  end if;
  insert into queues.error (task_id, error_message)
  select append_error.task_id, left(append_error.error_message, 8192)
  where (
    select count(*) from (
      select from queues.error e where e.task_id = append_error.task_id limit queues.max_errors()
    ) kept
  ) < queues.max_errors();
  return true;
end $$;

grant execute on function queues.end_overdue_sessions() to perdure_worker;

reset role;
