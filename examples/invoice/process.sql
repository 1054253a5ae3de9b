-- The business process "invoice" for PostgreSQL: an invoice is rendered, three
-- times at most. It began as: perdure task new-process invoice --schema billing

create schema if not exists billing authorization perdure_owner;

set role perdure_owner;

-- 1. Data and facts. The root task is one run of the process; facts are only
-- ever added. An attempt has at most one outcome.

create table billing.invoice_task (
  invoice_task_id bigint generated always as identity primary key,
  customer text not null,
  cents bigint not null check (cents > 0),
  idempotency_key uuid not null default gen_random_uuid(),
  created_at timestamptz not null default queues.now()
);

create table billing.invoice_task_scheduled (
  invoice_task_id bigint not null references billing.invoice_task,
  attempt integer not null,
  task_id bigint not null,
  created_at timestamptz not null default queues.now(),
  primary key (invoice_task_id, attempt)
);

create table billing.invoice_task_failed (
  invoice_task_id bigint not null,
  attempt integer not null,
  error_message text not null,
  permanent boolean not null default false,
  created_at timestamptz not null default queues.now(),
  primary key (invoice_task_id, attempt),
  foreign key (invoice_task_id, attempt) references billing.invoice_task_scheduled
);

create table billing.invoice_task_succeeded (
  invoice_task_id bigint primary key,
  attempt integer not null,
  result jsonb,
  created_at timestamptz not null default queues.now(),
  foreign key (invoice_task_id, attempt) references billing.invoice_task_scheduled
);

create trigger append_only before update or delete on billing.invoice_task_scheduled for each row execute function internal.refuse_change();

create trigger append_only before update or delete on billing.invoice_task_failed for each row execute function internal.refuse_change();

create trigger append_only before update or delete on billing.invoice_task_succeeded for each row execute function internal.refuse_change();

create function billing.has_invoice_task_succeeded(invoice_task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from billing.invoice_task_succeeded s where s.invoice_task_id = $1)
$$;

create function billing.is_invoice_task_refused(invoice_task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from billing.invoice_task_failed f where f.invoice_task_id = $1 and f.permanent)
$$;

create function billing.count_invoice_task_failures(invoice_task_id bigint) returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer from billing.invoice_task_failed f where f.invoice_task_id = $1
$$;

create function billing.count_invoice_task_scheduled(invoice_task_id bigint) returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer from billing.invoice_task_scheduled s where s.invoice_task_id = $1
$$;

-- 2. Handlers. The first statement lets the worker act only on a task that it
-- holds.

create function billing.get_invoice_payload(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload -> 'invoice_task_id');
  root billing.invoice_task;
begin
  perform queues.require_task('billing.get_invoice_payload', payload);
  select * into root from billing.invoice_task t where t.invoice_task_id = id;
  if root.invoice_task_id is null then
    return internal.invalid('invoice_task_not_found');
  end if;
  if billing.has_invoice_task_succeeded(id) then
    return internal.invalid('already_done');
  end if;
  -- What must never be done: record it as permanent, and refuse.
  if root.customer = '' then
    insert into billing.invoice_task_failed (invoice_task_id, attempt, error_message, permanent)
    values (id, internal.to_id(payload -> 'attempt'), 'nobody to send it to', true)
    on conflict do nothing;
    return internal.invalid('no_customer');
  end if;
  return internal.ok(jsonb_build_object('customer', root.customer, 'cents', root.cents, 'idempotency_key', root.idempotency_key));
end $$;

create function billing.record_invoice_success(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload #> '{original_payload,invoice_task_id}');
  number bigint := internal.to_id(payload #> '{original_payload,attempt}');
begin
  perform queues.require_task('billing.record_invoice_success', payload);
  perform from billing.invoice_task t where t.invoice_task_id = id for update;
  if exists (select from billing.invoice_task_failed f where f.invoice_task_id = id and f.attempt = number) then
    return internal.invalid('attempt_has_failed');
  end if;
  insert into billing.invoice_task_succeeded (invoice_task_id, attempt, result)
  values (id, number, payload -> 'worker_payload')
  on conflict do nothing;
  return internal.ok();
end $$;

create function billing.record_invoice_failure(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload #> '{original_payload,invoice_task_id}');
  number bigint := internal.to_id(payload #> '{original_payload,attempt}');
begin
  perform queues.require_task('billing.record_invoice_failure', payload);
  perform from billing.invoice_task t where t.invoice_task_id = id for update;
  if exists (select from billing.invoice_task_succeeded s where s.invoice_task_id = id and s.attempt = number) then
    return internal.invalid('attempt_has_succeeded');
  end if;
  insert into billing.invoice_task_failed (invoice_task_id, attempt, error_message)
  values (id, number, left(coalesce(payload ->> 'error', 'unknown'), 8192))
  on conflict do nothing;
  return internal.ok();
end $$;

-- 3. The supervisor: lock the root, read facts, decide, look again later.

create function billing.invoice_supervisor(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  max_attempts constant integer := 3;
  max_runs constant integer := 50;
  id bigint := internal.to_id(payload -> 'invoice_task_id');
  run_count bigint := coalesce(internal.to_id(payload -> 'run_count'), 0) + 1;
  lost billing.invoice_task_scheduled;
  failures integer;
begin
  perform queues.require_task('billing.invoice_supervisor', payload);
  perform from billing.invoice_task t where t.invoice_task_id = id for update;
  if not found then
    return internal.invalid('invoice_task_not_found');
  end if;
  if billing.has_invoice_task_succeeded(id) or billing.is_invoice_task_refused(id) then
    return internal.ok();
  end if;
  if run_count > max_runs then
    return internal.invalid('run_cap_reached for invoice_task ' || id);
  end if;
  -- An attempt that ended without an outcome, as by a crash, counts as failed.
  select s.* into lost
  from billing.invoice_task_scheduled s
  where s.invoice_task_id = id and queues.is_over(s.task_id)
    and not exists (select from billing.invoice_task_failed f where f.invoice_task_id = id and f.attempt = s.attempt);
  if lost.attempt is not null then
    perform queues.cancel(lost.task_id);
    insert into billing.invoice_task_failed (invoice_task_id, attempt, error_message)
    values (id, lost.attempt, 'attempt ended without an outcome');
  end if;
  failures := billing.count_invoice_task_failures(id);
  if failures >= max_attempts then
    return internal.ok();
  end if;
  if billing.count_invoice_task_scheduled(id) <= failures then
    insert into billing.invoice_task_scheduled (invoice_task_id, attempt, task_id)
    values (id, failures + 1, queues.enqueue('render', jsonb_build_object(
      'task_type', 'render', 'invoice_task_id', id, 'attempt', failures + 1, 'before_handler', 'billing.get_invoice_payload',
      'success_handler', 'billing.record_invoice_success', 'error_handler', 'billing.record_invoice_failure'
    )));
  end if;
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', 'billing.invoice_supervisor', 'invoice_task_id', id, 'run_count', run_count
  ), queues.now() + least(interval '50 milliseconds' * power(2, least(run_count - 1, 20)), interval '10 minutes'));
  return internal.ok();
end $$;

-- 4. The kickoff, for the application.

create function billing.kickoff_invoice_task(customer text, cents bigint, scheduled_at timestamptz default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint;
begin
  insert into billing.invoice_task (customer, cents) values (kickoff_invoice_task.customer, kickoff_invoice_task.cents) returning invoice_task_id into id;
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', 'billing.invoice_supervisor', 'invoice_task_id', id
  ), kickoff_invoice_task.scheduled_at);
  return id;
end $$;

-- 5. Grants: the worker may run these, and nobody may by default.

select internal.allow_function(function_name)
from unnest(array['billing.invoice_supervisor', 'billing.get_invoice_payload', 'billing.record_invoice_success', 'billing.record_invoice_failure']) as function_name;

reset role;
