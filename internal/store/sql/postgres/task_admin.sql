-- Tasks: what operators do, as members of the owner.

-- name: TaskGet
select task_id, task_type, payload, status, attempts, crashes, outcome, enqueued_at, scheduled_at, dequeued_at, finished_at, worker, lease_expires_at
from queues.task
where task_id = ?

-- name: TaskRevive
-- An operator's retry: due now, as if it had never run. An outcome that its
-- handler has not taken note of stays: it is not sent again.
update queues.task
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, scheduled_at = queues.now(), finished_at = null, unrouted = false
where task_id = ? and status <> 'processing'

-- name: TaskCancel
-- One that runs is cancelled too: its claim is gone, so its outcome is dropped.
update queues.task
set status = 'cancelled', finished_at = queues.now(), worker = null, token = null, lease_expires_at = null
where task_id = ? and status in ('pending', 'processing')

-- name: TaskErrorList
select error_id, task_id, error_message, created_at
from queues.error

-- name: TaskErrorPurge
delete from queues.error
where error_id in (
  select error_id from queues.error where created_at <= queues.now() - ?::bigint * interval '1 microsecond' order by error_id limit 1000
)

-- name: CommsSendEmail
select comms.create_and_kickoff_email_task(?, ?, ?, ?, ?, coalesce(?::timestamptz, queues.now() + ?::bigint * interval '1 microsecond'))

-- name: CommsSendSMS
select comms.create_and_kickoff_sms_task(?, ?, ?, coalesce(?::timestamptz, queues.now() + ?::bigint * interval '1 microsecond'))

-- name: TaskLint
-- What is wrong with the rights around the worker. A sound database returns no
-- row.
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
    ('queues.report_unrouted_tasks'), ('queues.next_task_in'), ('queues.heartbeat'), ('queues.release'), ('queues.postpone'), ('queues.hold'),
    ('queues.append_error'), ('queues.complete'), ('queues.fail'), ('queues.sweep'), ('queues.sweep_dead'),
    ('internal.run_function'), ('internal.find_function'), ('internal.is_allowed')
)
select 'security definer function without search_path = pg_catalog, pg_temp', b.name
from business b
where b.prosecdef and not coalesce(b.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']
union all
select 'function that PUBLIC may execute', b.name
from business b
where has_function_privilege('public', b.oid, 'execute')
union all
select 'security definer function of a superuser', b.name
from business b
join pg_roles r on r.oid = b.proowner
where b.prosecdef and r.rolsuper
union all
select 'function that the worker may execute and that is not allowed', o.name
from ours o
where has_schema_privilege('perdure_worker', split_part(o.name, '.', 1), 'usage') and has_function_privilege('perdure_worker', o.oid, 'execute')
  and split_part(o.name, '.', 1) <> 'public'
  and o.name not in (select name from interface) and o.name not in (select function_name from internal.allowed_function)
union all
select 'security definer function in schema public that the worker may execute', o.name
from ours o
where split_part(o.name, '.', 1) = 'public' and o.prosecdef and has_schema_privilege('perdure_worker', 'public', 'usage')
  and has_function_privilege('perdure_worker', o.oid, 'execute')
union all
select 'allowed function that does not exist', a.function_name
from internal.allowed_function a
where a.function_name not in (select name from ours)
union all
select 'relation that the worker has a right on', c.oid::regclass::text
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg_toast%' and n.nspname not like 'pg_temp%'
  and case
    when c.relkind = 'S' then has_sequence_privilege('perdure_worker', c.oid, 'usage, select, update')
    when c.relkind in ('r', 'v', 'm', 'p', 'f') then has_table_privilege('perdure_worker', c.oid, 'select, insert, update, delete, truncate, references, trigger')
      or has_any_column_privilege('perdure_worker', c.oid, 'select, insert, update, references')
  end
union all
select 'schema that the worker may create in', n.nspname
from pg_namespace n
where n.nspname not like 'pg_temp%' and n.nspname not like 'pg_toast_temp%' and has_schema_privilege('perdure_worker', n.oid, 'create')
union all
select 'right of the worker on the database', right_name
from unnest(array['temporary', 'create']) as right_name
where has_database_privilege('perdure_worker', current_database(), right_name)
union all
select 'function of the system that the worker may execute', p.oid::regprocedure::text
from pg_proc p
where p.pronamespace = 'pg_catalog'::regnamespace
  and p.proname in ('lo_create', 'lo_creat', 'lo_from_bytea', 'lo_open', 'lo_put', 'lo_unlink', 'lo_import', 'lo_export', 'pg_logical_emit_message')
  and has_function_privilege('perdure_worker', p.oid, 'execute')
union all
select 'right or membership of the worker role', r.rolname
from pg_roles r
where r.rolname = 'perdure_worker' and (r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls
  or exists (select from pg_auth_members m where m.member = r.oid))
union all
select 'right of the owner role', r.rolname
from pg_roles r
where r.rolname = 'perdure_owner' and (r.rolsuper or r.rolcreaterole or r.rolbypassrls or r.rolcanlogin)

-- name: TaskClaimed
select count(*)
from (select 1 from queues.task where status = 'processing' and task_type = ? and lease_expires_at > ? limit 1) s
