-- The function runner, and who may be run by it.

-- The one function of that name, if the worker could be allowed to run it: a
-- name of two plain identifiers, one argument and a result of jsonb, security
-- definer with a pinned search path, not overloaded. It is security invoker: the
-- catalog is readable for everybody.
create function internal.find_function(function_name text) returns oid
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  found_functions oid[];
  fit boolean;
begin
  if function_name is null or function_name !~ '^[a-z_][a-z0-9_]{0,62}[.][a-z_][a-z0-9_]{0,62}$' then
    raise exception 'malformed function name' using errcode = 'invalid_parameter_value';
  end if;
  select array_agg(p.oid), bool_and(
    p.prokind = 'f' and not p.proretset and p.prosecdef and p.prorettype = 'jsonb'::regtype
    and p.proargtypes::text = 'jsonb'::regtype::oid::text and p.proconfig @> array['search_path=pg_catalog, pg_temp']
  )
  into found_functions, fit
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = split_part(function_name, '.', 1) and p.proname = split_part(function_name, '.', 2);
  if found_functions is null then
    raise exception 'function % does not exist', function_name using errcode = 'undefined_function';
  end if;
  if cardinality(found_functions) > 1 or not fit then
    raise exception 'function % is not one security definer function (jsonb) returns jsonb with search_path = pg_catalog, pg_temp', function_name
      using errcode = 'wrong_object_type';
  end if;
  return found_functions[1];
end $$;

-- For migrations of business processes: lets the worker run a function, and
-- nobody else.
create function internal.allow_function(function_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  id oid := internal.find_function(function_name);
begin
  if split_part(function_name, '.', 1) in ('queues', 'internal', 'perdure') then
    raise exception 'function % is not of a business process', function_name using errcode = 'insufficient_privilege';
  end if;
  execute format('revoke execute on function %s from public', id::regprocedure);
  execute format('grant execute on function %s to perdure_worker', id::regprocedure);
  execute format('grant usage on schema %I to perdure_worker', split_part(function_name, '.', 1));
  insert into internal.allowed_function (function_name) values (allow_function.function_name) on conflict do nothing;
end $$;

create function internal.is_allowed(function_name text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from internal.allowed_function a where a.function_name = is_allowed.function_name)
$$;

-- Runs a function by its name, with the rights of the caller.
create function internal.run_function(function_name text, payload jsonb) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  id oid;
  result jsonb;
begin
  if function_name is null or function_name !~ '^[a-z_][a-z0-9_]{0,62}[.][a-z_][a-z0-9_]{0,62}$' then
    raise exception 'malformed function name' using errcode = 'invalid_parameter_value';
  end if;
  if not internal.is_allowed(function_name) then
    raise exception 'function % is not allowed for tasks', function_name using errcode = 'insufficient_privilege';
  end if;
  id := internal.find_function(function_name);
  if not has_function_privilege(current_user, id, 'execute') then
    raise exception 'permission denied for function %', function_name using errcode = 'insufficient_privilege';
  end if;
  execute format('select %I.%I($1)', split_part(function_name, '.', 1), split_part(function_name, '.', 2))
    into result using coalesce(payload, '{}');
  return coalesce(result, '{}');
end $$;

-- The first statement of every function that the worker may run. The worker can
-- call it with any payload; this lets it act only on a task that it holds, that
-- names the function, and with the payload that is stored. Members of the owner
-- may do without.
create function queues.require_task(function_name text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if pg_has_role(session_user, 'perdure_owner', 'member') then
    return;
  end if;
  perform
  from queues.task t
  where t.task_id = nullif(current_setting('perdure.task_id', true), '')::bigint and t.token::text = current_setting('perdure.task_token', true)
    and t.payload in (require_task.payload, require_task.payload -> 'original_payload')
    and require_task.function_name in (t.payload ->> 'db_function', t.payload ->> 'before_handler', t.payload ->> 'success_handler', t.payload ->> 'error_handler');
  if not found then
    raise exception 'no task that names % with this payload is held', function_name using errcode = 'insufficient_privilege';
  end if;
end $$;

-- Envelopes, as all functions for tasks return them.
create function internal.ok(payload jsonb default null) returns jsonb
language sql immutable
return case when payload is null then '{"success": true}'::jsonb else jsonb_build_object('success', true, 'payload', payload) end;

create function internal.invalid(message text) returns jsonb
language sql immutable
return jsonb_build_object('success', false, 'validation_failure_message', message);

-- A whole number of a payload, or null if it is none.
create function internal.to_id(value jsonb) returns bigint
language sql immutable
return case
  when jsonb_typeof(value) = 'number' and value #>> '{}' ~ '^[0-9]{1,18}$' then (value #>> '{}')::bigint
  when jsonb_typeof(value) = 'string' and value #>> '{}' ~ '^[0-9]{1,18}$' then (value #>> '{}')::bigint
end;

grant usage on schema queues, internal to perdure_worker;

grant execute on function
  queues.dequeue_next_available_tasks(text, text[], integer, interval),
  queues.dequeue_next_available_task(),
  queues.reap_expired_tasks(integer),
  queues.report_unrouted_tasks(text[]),
  queues.next_task_in(text[]),
  queues.heartbeat(bigint[], uuid[], interval),
  queues.release(bigint[], uuid[]),
  queues.hold(bigint, uuid),
  queues.append_error(bigint, uuid, text),
  queues.complete(bigint, uuid),
  queues.fail(bigint, uuid, text, interval, jsonb),
  queues.sweep(interval),
  internal.run_function(text, jsonb),
  internal.find_function(text),
  internal.is_allowed(text)
to perdure_worker;
