-- Tasks: the possible actions of an untrusted worker, on PostgreSQL.

-- name: TaskLint
-- Returns the problems of the privileges around the worker: the problem, its object,
-- and the statement with which a superuser fixes it, if there is one. A correct
-- database returns no row.
with ours as (
  select p.oid, p.proowner, p.prosecdef, p.proconfig, format('%s.%s', n.nspname, p.proname) as name
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  where n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg_toast%' and n.nspname not like 'pg_temp%'
), business as (
  select * from ours
  where name in (select function_name from internal.allowed_function)
    or split_part(name, '.', 1) in ('queues', 'internal', 'comms')
), interface (name) as (
  values ('queues.dequeue_next_available_tasks'), ('queues.dequeue_next_available_task'), ('queues.reap_expired_tasks'),
    ('queues.report_unrouted_tasks'), ('queues.next_task_in'), ('queues.heartbeat'), ('queues.release'), ('queues.postpone'), ('queues.hold'), ('queues.hold_tasks'), ('queues.run_tasks'),
    ('queues.append_error'), ('queues.complete'), ('queues.fail'), ('queues.sweep'), ('queues.sweep_dead'), ('queues.end_overdue_sessions'),
    ('internal.run_function'), ('internal.find_function'), ('internal.is_allowed')
), worker as (
  select * from pg_roles where rolname = 'perdure_worker'
), problems (problem, object, remedy) as (
  select 'security definer function without search_path = pg_catalog, pg_temp', b.name,
    format('alter function %s set search_path = pg_catalog, pg_temp', b.oid::regprocedure)
  from business b
  where b.prosecdef and not coalesce(b.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']
  union all
  select 'function that PUBLIC may execute', b.name, format('revoke execute on function %s from public', b.oid::regprocedure)
  from business b
  where has_function_privilege('public', b.oid, 'execute')
  union all
  select 'security definer function of a superuser', b.name, format('alter function %s owner to perdure_owner', b.oid::regprocedure)
  from business b
  join pg_roles r on r.oid = b.proowner
  where b.prosecdef and r.rolsuper
  union all
  select 'function that the worker may execute and that is not allowed', o.name,
    format('revoke execute on function %s from public, perdure_worker', o.oid::regprocedure)
  from ours o
  where has_schema_privilege('perdure_worker', split_part(o.name, '.', 1), 'usage') and has_function_privilege('perdure_worker', o.oid, 'execute')
    and split_part(o.name, '.', 1) <> 'public'
    and o.name not in (select name from interface) and o.name not in (select function_name from internal.allowed_function)
  union all
  select 'security definer function in schema public that the worker may execute', o.name,
    format('revoke execute on function %s from public, perdure_worker', o.oid::regprocedure)
  from ours o
  where split_part(o.name, '.', 1) = 'public' and o.prosecdef and has_schema_privilege('perdure_worker', 'public', 'usage')
    and has_function_privilege('perdure_worker', o.oid, 'execute')
  union all
  select 'allowed function that does not exist', a.function_name, format('delete from internal.allowed_function where function_name = %L', a.function_name)
  from internal.allowed_function a
  where a.function_name not in (select name from ours)
  union all
  select 'relation that the worker has a right on', c.oid::regclass::text,
    format('revoke all on %s %s from public, perdure_worker', case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass)
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg_toast%' and n.nspname not like 'pg_temp%'
    and case
      when c.relkind = 'S' then has_sequence_privilege('perdure_worker', c.oid, 'usage, select, update')
      when c.relkind in ('r', 'v', 'm', 'p', 'f') then has_table_privilege('perdure_worker', c.oid, 'select, insert, update, delete, truncate, references, trigger')
        or has_any_column_privilege('perdure_worker', c.oid, 'select, insert, update, references')
    end
  union all
  select 'schema that the worker may create in', n.nspname, format('revoke create on schema %I from public, perdure_worker', n.nspname)
  from pg_namespace n
  where n.nspname not like 'pg_temp%' and n.nspname not like 'pg_toast_temp%' and has_schema_privilege('perdure_worker', n.oid, 'create')
  union all
  select 'right of the worker on the database', right_name, format('revoke %s on database %I from public, perdure_worker', right_name, current_database())
  from unnest(array['temporary', 'create']) as right_name
  where has_database_privilege('perdure_worker', current_database(), right_name)
  union all
  select 'function of the system that the worker may execute', p.oid::regprocedure::text,
    format('revoke execute on function pg_catalog.%I(%s) from public, perdure_worker', p.proname, pg_get_function_identity_arguments(p.oid))
  from pg_proc p
  where p.pronamespace = 'pg_catalog'::regnamespace
    and p.proname in ('lo_create', 'lo_creat', 'lo_from_bytea', 'lo_open', 'lo_put', 'lo_unlink', 'lo_import', 'lo_export', 'lowrite', 'lo_truncate', 'lo_truncate64',
      'pg_logical_emit_message')
    and has_function_privilege('perdure_worker', p.oid, 'execute')
  union all
  select 'right of the worker role', attribute.name, format('alter role perdure_worker no%s', attribute.name)
  from worker w
  cross join lateral (
    values ('superuser', w.rolsuper), ('createrole', w.rolcreaterole), ('createdb', w.rolcreatedb), ('replication', w.rolreplication), ('bypassrls', w.rolbypassrls)
  ) as attribute (name, given)
  where attribute.given
  union all
  select 'role that the worker is a member of', m.roleid::regrole::text, format('revoke %s from perdure_worker', m.roleid::regrole)
  from pg_auth_members m
  join worker w on w.oid = m.member
  union all
  select 'right of the owner role', r.rolname, 'alter role perdure_owner nologin nosuperuser nocreaterole nobypassrls'
  from pg_roles r
  where r.rolname = 'perdure_owner' and (r.rolsuper or r.rolcreaterole or r.rolbypassrls or r.rolcanlogin)
  union all
  -- A role can set its own timeouts to any value: another role has to end its transactions.
  select 'role that cannot end overdue transactions of the worker', 'perdure_owner', 'grant perdure_worker to perdure_owner'
  where not pg_has_role('perdure_owner', 'perdure_worker', 'usage')
  union all
  -- A role can also change its settings for all its later sessions.
  select 'setting of the worker role that differs from the one it was made with', coalesce(expected.name, found.name),
    case when expected.name is null then format('alter role perdure_worker %sreset %I', found.place, found.name)
      else format('alter role perdure_worker %sset %I = %L', found.place, expected.name, expected.value) end
  from (values ('statement_timeout', '30s'), ('idle_in_transaction_session_timeout', '15s'), ('search_path', 'pg_catalog')) as expected (name, value)
  full join (
    select split_part(setting, '=', 1) as name, substr(setting, strpos(setting, '=') + 1) as value,
      coalesce('in database ' || quote_ident(d.datname) || ' ', '') as place
    from pg_db_role_setting s
    join worker w on w.oid = s.setrole
    left join pg_database d on d.oid = s.setdatabase
    cross join unnest(s.setconfig) as setting
    where s.setdatabase = 0 or d.datname = current_database()
  ) found on found.name = expected.name
  where found.value is distinct from expected.value
  union all
  select 'connection limit of the worker role that leaves none to others', w.rolconnlimit::text,
    format('alter role perdure_worker connection limit %s', greatest(current_setting('max_connections')::integer / 2, 1))
  from worker w
  where w.rolconnlimit < 0
    or w.rolconnlimit >= current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
  union all
  -- A prepared transaction has no session that could be ended, and keeps its locks.
  select 'setting that lets the worker keep locks without a session', 'max_prepared_transactions', 'alter system set max_prepared_transactions = 0'
  where current_setting('max_prepared_transactions')::integer > 0
)
select problem, object, coalesce(remedy, '') from problems
