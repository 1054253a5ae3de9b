-- The business process "{name}": a task of the type {name} is run until it
-- succeeds, three times at most. Written by: perdure task new-process {name}
--
-- Run it as the user that migrated Perdure, in one transaction. Then give the
-- worker a sender for the type {name} (task.Options.Senders) and kick a process
-- off: select {schema}.kickoff_{name}_task('{"your": "data"}');

create schema if not exists {schema} authorization perdure_owner;

set role perdure_owner;

-- 1. Data and facts. The root task is one run of the process; facts are only
-- ever added. An attempt has at most one outcome.

create table {schema}.{name}_task (
  {name}_task_id bigint generated always as identity primary key,
  input jsonb not null,
  idempotency_key uuid not null default gen_random_uuid(),
  created_at timestamptz not null default queues.now()
);

create table {schema}.{name}_task_scheduled (
  {name}_task_id bigint not null references {schema}.{name}_task,
  attempt integer not null,
  task_id bigint not null,
  created_at timestamptz not null default queues.now(),
  primary key ({name}_task_id, attempt)
);

create table {schema}.{name}_task_failed (
  {name}_task_id bigint not null,
  attempt integer not null,
  error_message text not null,
  permanent boolean not null default false,
  created_at timestamptz not null default queues.now(),
  primary key ({name}_task_id, attempt),
  foreign key ({name}_task_id, attempt) references {schema}.{name}_task_scheduled
);

create table {schema}.{name}_task_succeeded (
  {name}_task_id bigint primary key,
  attempt integer not null,
  result jsonb,
  created_at timestamptz not null default queues.now(),
  foreign key ({name}_task_id, attempt) references {schema}.{name}_task_scheduled
);

create trigger append_only before update or delete on {schema}.{name}_task_scheduled for each row execute function internal.refuse_change();

create trigger append_only before update or delete on {schema}.{name}_task_failed for each row execute function internal.refuse_change();

create trigger append_only before update or delete on {schema}.{name}_task_succeeded for each row execute function internal.refuse_change();

create function {schema}.has_{name}_task_succeeded({name}_task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from {schema}.{name}_task_succeeded s where s.{name}_task_id = $1)
$$;

create function {schema}.is_{name}_task_refused({name}_task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from {schema}.{name}_task_failed f where f.{name}_task_id = $1 and f.permanent)
$$;

create function {schema}.count_{name}_task_failures({name}_task_id bigint) returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer from {schema}.{name}_task_failed f where f.{name}_task_id = $1
$$;

create function {schema}.count_{name}_task_scheduled({name}_task_id bigint) returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer from {schema}.{name}_task_scheduled s where s.{name}_task_id = $1
$$;

-- 2. Handlers. The first statement lets the worker act only on a task that it
-- holds.

create function {schema}.get_{name}_payload(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload -> '{name}_task_id');
  root {schema}.{name}_task;
begin
  perform queues.require_task('{schema}.get_{name}_payload', payload);
  select * into root from {schema}.{name}_task t where t.{name}_task_id = id;
  if root.{name}_task_id is null then
    return internal.invalid('{name}_task_not_found');
  end if;
  if {schema}.has_{name}_task_succeeded(id) then
    return internal.invalid('already_done');
  end if;
  -- What must never be done: record it as permanent, and refuse.
  if root.input = '{}' then
    insert into {schema}.{name}_task_failed ({name}_task_id, attempt, error_message, permanent)
    values (id, internal.to_id(payload -> 'attempt'), 'input is empty', true)
    on conflict do nothing;
    return internal.invalid('input_is_empty');
  end if;
  return internal.ok(root.input || jsonb_build_object('idempotency_key', root.idempotency_key));
end $$;

create function {schema}.record_{name}_success(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload #> '{original_payload,{name}_task_id}');
  number bigint := internal.to_id(payload #> '{original_payload,attempt}');
begin
  perform queues.require_task('{schema}.record_{name}_success', payload);
  perform from {schema}.{name}_task t where t.{name}_task_id = id for update;
  if exists (select from {schema}.{name}_task_failed f where f.{name}_task_id = id and f.attempt = number) then
    return internal.invalid('attempt_has_failed');
  end if;
  insert into {schema}.{name}_task_succeeded ({name}_task_id, attempt, result)
  values (id, number, payload -> 'worker_payload')
  on conflict do nothing;
  return internal.ok();
end $$;

create function {schema}.record_{name}_failure(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload #> '{original_payload,{name}_task_id}');
  number bigint := internal.to_id(payload #> '{original_payload,attempt}');
begin
  perform queues.require_task('{schema}.record_{name}_failure', payload);
  perform from {schema}.{name}_task t where t.{name}_task_id = id for update;
  if exists (select from {schema}.{name}_task_succeeded s where s.{name}_task_id = id and s.attempt = number) then
    return internal.invalid('attempt_has_succeeded');
  end if;
  insert into {schema}.{name}_task_failed ({name}_task_id, attempt, error_message)
  values (id, number, left(coalesce(payload ->> 'error', 'unknown'), 8192))
  on conflict do nothing;
  return internal.ok();
end $$;

-- 3. The supervisor: lock the root, read facts, decide, look again later.

create function {schema}.{name}_supervisor(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  max_attempts constant integer := 3;
  max_runs constant integer := 50;
  id bigint := internal.to_id(payload -> '{name}_task_id');
  run_count bigint := coalesce(internal.to_id(payload -> 'run_count'), 0) + 1;
  lost {schema}.{name}_task_scheduled;
  failures integer;
begin
  perform queues.require_task('{schema}.{name}_supervisor', payload);
  perform from {schema}.{name}_task t where t.{name}_task_id = id for update;
  if not found then
    return internal.invalid('{name}_task_not_found');
  end if;
  if {schema}.has_{name}_task_succeeded(id) or {schema}.is_{name}_task_refused(id) then
    return internal.ok();
  end if;
  if run_count > max_runs then
    return internal.invalid('run_cap_reached for {name}_task ' || id);
  end if;
  -- An attempt that ended without an outcome, as by a crash, counts as failed.
  select s.* into lost
  from {schema}.{name}_task_scheduled s
  where s.{name}_task_id = id and queues.is_over(s.task_id)
    and not exists (select from {schema}.{name}_task_failed f where f.{name}_task_id = id and f.attempt = s.attempt);
  if lost.attempt is not null then
    perform queues.cancel(lost.task_id);
    insert into {schema}.{name}_task_failed ({name}_task_id, attempt, error_message)
    values (id, lost.attempt, 'attempt ended without an outcome');
  end if;
  failures := {schema}.count_{name}_task_failures(id);
  if failures >= max_attempts then
    return internal.ok();
  end if;
  if {schema}.count_{name}_task_scheduled(id) <= failures then
    insert into {schema}.{name}_task_scheduled ({name}_task_id, attempt, task_id)
    values (id, failures + 1, queues.enqueue('{name}', jsonb_build_object(
      'task_type', '{name}', '{name}_task_id', id, 'attempt', failures + 1, 'before_handler', '{schema}.get_{name}_payload',
      'success_handler', '{schema}.record_{name}_success', 'error_handler', '{schema}.record_{name}_failure'
    )));
  end if;
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', '{schema}.{name}_supervisor', '{name}_task_id', id, 'run_count', run_count
  ), queues.now() + least(interval '5 seconds' * power(2, least(run_count - 1, 20)), interval '10 minutes'));
  return internal.ok();
end $$;

-- 4. The kickoff, for the application.

create function {schema}.kickoff_{name}_task(input jsonb, scheduled_at timestamptz default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint;
begin
  insert into {schema}.{name}_task (input) values (kickoff_{name}_task.input) returning {name}_task_id into id;
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', '{schema}.{name}_supervisor', '{name}_task_id', id
  ), kickoff_{name}_task.scheduled_at);
  return id;
end $$;

-- 5. Grants: the worker may run these, and nobody may by default.

select internal.allow_function(function_name)
from unnest(array['{schema}.{name}_supervisor', '{schema}.get_{name}_payload', '{schema}.record_{name}_success', '{schema}.record_{name}_failure']) as function_name;

reset role;
