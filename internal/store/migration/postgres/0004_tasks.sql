-- Tasks: a queue whose business logic lives in the database as append-only
-- facts, run by a worker that may do nothing else.
--
-- The functions are the boundary. They belong to perdure_owner, who cannot log
-- in; perdure_worker may execute those that a worker needs, and has no right on
-- any table. This file makes the roles and the tables; those that follow with
-- the same number make the functions.

-- Roles belong to the whole server: another database may be creating them at
-- this moment. Their settings are made once, with the role.
do $$
begin
  if not exists (select from pg_roles where rolname = 'perdure_owner') then
    begin
      create role perdure_owner nologin;
    exception when duplicate_object or unique_violation then
      null; -- another database was faster
    end;
  end if;
  if not exists (select from pg_roles where rolname = 'perdure_worker') then
    begin
      create role perdure_worker login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 100;
      alter role perdure_worker set statement_timeout = '30s';
      alter role perdure_worker set idle_in_transaction_session_timeout = '15s';
      alter role perdure_worker set search_path = 'pg_catalog';
    exception when duplicate_object or unique_violation then
      null;
    end;
  end if;
  begin
    set role perdure_owner;
    reset role;
  exception when insufficient_privilege then
    begin
      execute format('grant perdure_owner to %I', current_user);
    exception when unique_violation then
      null;
    end;
  end;
exception when insufficient_privilege then
  raise exception 'user % may neither create the roles perdure_owner and perdure_worker nor become perdure_owner; let a superuser run: '
    'create role perdure_owner nologin; create role perdure_worker login noinherit connection limit 100; grant perdure_owner to %', current_user, quote_ident(current_user)
    using errcode = 'insufficient_privilege';
end $$;

-- What PUBLIC may do in every database, and a worker shall not: temporary tables
-- (they come first in every search path that does not name pg_temp), large
-- objects, records in the log. Who may not revoke it is told by the lint.
do $$
declare
  name text;
begin
  begin
    execute format('grant temporary on database %I to %I', current_database(), current_user);
    execute format('revoke temporary, create on database %I from public', current_database());
  exception when insufficient_privilege then
    null;
  end;
  begin
    revoke create on schema public from public;
  exception when insufficient_privilege or invalid_schema_name then
    null;
  end;
  for name in
    select format('%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid))
    from pg_proc p
    where p.pronamespace = 'pg_catalog'::regnamespace
      and p.proname in ('lo_create', 'lo_creat', 'lo_from_bytea', 'lo_open', 'lo_put', 'lo_unlink', 'lo_import', 'lo_export', 'pg_logical_emit_message')
      and has_function_privilege('public', p.oid, 'execute')
  loop
    begin
      execute 'revoke execute on function pg_catalog.' || name || ' from public';
    exception when insufficient_privilege then
      null;
    end;
  end loop;
end $$;

create schema queues authorization perdure_owner;

create schema internal authorization perdure_owner;

create schema comms authorization perdure_owner;

set role perdure_owner;

-- The form with IN SCHEMA would not take away what PUBLIC has by default.
alter default privileges revoke execute on functions from public;

-- The time of a task: the transaction's, unless a test that is a member of the
-- owner says otherwise. A worker cannot move it.
create function queues.now() returns timestamptz
language sql stable
return case
  when coalesce(current_setting('perdure.now', true), '') = '' then pg_catalog.now()
  when pg_has_role(session_user, 'perdure_owner', 'member') then current_setting('perdure.now', true)::timestamptz
  else pg_catalog.now()
end;

create domain queues.task_type as text check (value ~ '^[a-z][a-z0-9_]{0,62}$');

-- A claim writes the row: status, worker, a token of its own and a lease.
-- outcome is what came of the work while its handler has yet to take note of it.
-- unrouted says that queues.error has a row for a task that nobody takes. trace
-- is that of the transaction which enqueues, whoever's function it runs.
create table queues.task (
  task_id bigint generated always as identity primary key,
  task_type queues.task_type not null,
  payload jsonb not null,
  enqueued_at timestamptz not null default queues.now(),
  scheduled_at timestamptz not null default queues.now(),
  dequeued_at timestamptz,
  status text not null default 'pending'
    check (status in ('pending', 'processing', 'completed', 'failed', 'quarantined', 'cancelled')),
  attempts integer not null default 0,
  crashes integer not null default 0,
  outcome jsonb,
  unrouted boolean not null default false,
  trace text default left(nullif(current_setting('perdure.trace', true), ''), 600),
  worker text,
  token uuid,
  lease_expires_at timestamptz,
  finished_at timestamptz,
  check ((status = 'processing') = (token is not null)),
  check ((status = 'processing') = (lease_expires_at is not null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Serves the claim: the due rows of one type, oldest first.
create index task_due_idx on queues.task (task_type, scheduled_at, task_id) where status = 'pending';

-- Serves the return of expired claims.
create index task_lease_idx on queues.task (lease_expires_at) where status = 'processing';

-- Serves the removal of rows that are done, after their retention.
create index task_finished_idx on queues.task (finished_at) where status in ('completed', 'cancelled');

-- Serves the list of dead letters.
create index task_dead_idx on queues.task (task_id) where status in ('failed', 'quarantined');

create table queues.error (
  error_id bigint generated always as identity primary key,
  task_id bigint references queues.task on delete set null,
  error_message text not null,
  created_at timestamptz not null default queues.now()
);

-- Serves the errors of one task, and the removal of a task.
create index error_task_idx on queues.error (task_id, error_id);

-- The functions that the worker may run, by name. It is the allow-list of
-- internal.run_function, and what the lint compares the grants with.
create table internal.allowed_function (
  function_name text primary key,
  allowed_at timestamptz not null default queues.now()
);
