-- comms: SMS. It differs from e-mail in its message and what the provider is told of it.

create table comms.sms_message (
  message_id bigint primary key,
  channel text not null default 'sms' check (channel = 'sms'),
  from_number text,
  to_number text not null,
  body text not null,
  foreign key (message_id, channel) references comms.message (message_id, channel)
);

-- One logical send. Its key is the same for all attempts, so that a provider
-- can tell that they are one.
create table comms.send_sms_task (
  send_sms_task_id bigint generated always as identity primary key,
  message_id bigint not null references comms.sms_message,
  idempotency_key uuid not null default gen_random_uuid(),
  created_at timestamptz not null default queues.now()
);

-- Facts, one row per attempt: it was begun, as a task of the queue; it failed.
-- An attempt has at most one outcome, so a handler that is called twice counts
-- once. permanent says that another attempt would be no better.
create table comms.send_sms_task_scheduled (
  send_sms_task_id bigint not null references comms.send_sms_task,
  attempt integer not null,
  task_id bigint not null,
  created_at timestamptz not null default queues.now(),
  primary key (send_sms_task_id, attempt)
);

create table comms.send_sms_task_failed (
  send_sms_task_id bigint not null,
  attempt integer not null,
  error_message text not null,
  permanent boolean not null default false,
  created_at timestamptz not null default queues.now(),
  primary key (send_sms_task_id, attempt),
  foreign key (send_sms_task_id, attempt) references comms.send_sms_task_scheduled
);

-- The terminal fact: at most one per send.
create table comms.send_sms_task_succeeded (
  send_sms_task_id bigint primary key,
  attempt integer not null,
  worker_payload jsonb,
  created_at timestamptz not null default queues.now(),
  foreign key (send_sms_task_id, attempt) references comms.send_sms_task_scheduled
);

create trigger append_only before update or delete on comms.send_sms_task_scheduled for each row execute function comms.refuse_change();

create trigger append_only before update or delete on comms.send_sms_task_failed for each row execute function comms.refuse_change();

create trigger append_only before update or delete on comms.send_sms_task_succeeded for each row execute function comms.refuse_change();

create function comms.has_send_sms_task_succeeded(send_sms_task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from comms.send_sms_task_succeeded s where s.send_sms_task_id = has_send_sms_task_succeeded.send_sms_task_id)
$$;

create function comms.count_send_sms_task_failures(send_sms_task_id bigint) returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer from comms.send_sms_task_failed f where f.send_sms_task_id = count_send_sms_task_failures.send_sms_task_id
$$;

create function comms.count_send_sms_task_scheduled(send_sms_task_id bigint) returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::integer from comms.send_sms_task_scheduled s where s.send_sms_task_id = count_send_sms_task_scheduled.send_sms_task_id
$$;

create function comms.is_send_sms_task_refused(send_sms_task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from comms.send_sms_task_failed f where f.send_sms_task_id = is_send_sms_task_refused.send_sms_task_id and f.permanent)
$$;

-- The last attempt, if it has no outcome yet.
create function comms.outstanding_send_sms_attempt(send_sms_task_id bigint) returns comms.send_sms_task_scheduled
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.*
  from comms.send_sms_task_scheduled s
  where s.send_sms_task_id = outstanding_send_sms_attempt.send_sms_task_id
    and not exists (select from comms.send_sms_task_failed f where f.send_sms_task_id = s.send_sms_task_id and f.attempt = s.attempt)
    and not exists (select from comms.send_sms_task_succeeded d where d.send_sms_task_id = s.send_sms_task_id and d.attempt = s.attempt)
  order by s.attempt desc
  limit 1
$$;

-- The supervisor. Its run is safe to repeat: the root row is locked first, and
-- what follows reads the facts as they are then.
create function comms.send_sms_supervisor(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  max_attempts constant integer := 2;
  max_runs constant integer := 50;
  id bigint := internal.to_id(payload -> 'send_sms_task_id');
  run_count bigint := coalesce(internal.to_id(payload -> 'run_count'), 0) + 1;
  idle_runs bigint := coalesce(internal.to_id(payload -> 'idle_runs'), 0) + 1;
  outstanding comms.send_sms_task_scheduled;
  failures integer;
  new_attempt integer;
begin
  perform queues.require_task('comms.send_sms_supervisor', payload);
  if id is null then
    return internal.invalid('missing_send_sms_task_id');
  end if;
  perform from comms.send_sms_task t where t.send_sms_task_id = id for update;
  if not found then
    return internal.invalid('send_sms_task_not_found');
  end if;
  if comms.has_send_sms_task_succeeded(id) then
    return internal.ok();
  end if;
  outstanding := comms.outstanding_send_sms_attempt(id);
  if outstanding.attempt is not null and (queues.is_over(outstanding.task_id) or run_count > max_runs) then
    perform queues.cancel(outstanding.task_id);
    insert into comms.send_sms_task_failed (send_sms_task_id, attempt, error_message, permanent)
    values (id, outstanding.attempt, case when run_count > max_runs then 'run cap reached' else 'attempt ended without an outcome' end, run_count > max_runs);
    outstanding := null;
  end if;
  failures := comms.count_send_sms_task_failures(id);
  if run_count > max_runs then
    return internal.invalid('run_cap_reached for send_sms_task ' || id);
  end if;
  if failures >= max_attempts or comms.is_send_sms_task_refused(id) then
    return internal.ok();
  end if;
  if comms.count_send_sms_task_scheduled(id) <= failures then
    new_attempt := failures + 1;
    idle_runs := 0;
    insert into comms.send_sms_task_scheduled (send_sms_task_id, attempt, task_id)
    values (id, new_attempt, queues.enqueue('sms', jsonb_build_object(
      'task_type', 'sms', 'send_sms_task_id', id, 'attempt', new_attempt,
      'before_handler', 'comms.get_sms_payload', 'success_handler', 'comms.record_sms_success', 'error_handler', 'comms.record_sms_failure'
    )));
  end if;
  perform queues.enqueue('db_function', payload || jsonb_build_object('run_count', run_count, 'idle_runs', idle_runs),
    queues.now() + comms.supervisor_delay(failures, idle_runs));
  return internal.ok();
end $$;

-- The before-handler. What it refuses is never sent: the fact that it records
-- ends the process.
create function comms.get_sms_payload(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint := internal.to_id(payload -> 'send_sms_task_id');
  number bigint := internal.to_id(payload -> 'attempt');
  root comms.send_sms_task;
  outstanding comms.send_sms_task_scheduled;
  message comms.sms_message;
begin
  perform queues.require_task('comms.get_sms_payload', payload);
  if id is null then
    return internal.invalid('missing_send_sms_task_id');
  end if;
  select * into root from comms.send_sms_task t where t.send_sms_task_id = id for update;
  if root.send_sms_task_id is null then
    return internal.invalid('send_sms_task_not_found');
  end if;
  outstanding := comms.outstanding_send_sms_attempt(id);
  if outstanding.attempt is distinct from number or comms.has_send_sms_task_succeeded(id) then
    return internal.invalid('attempt_not_outstanding');
  end if;
  select * into message from comms.sms_message m where m.message_id = root.message_id;
  if message.body = '' then
    insert into comms.send_sms_task_failed (send_sms_task_id, attempt, error_message, permanent)
    values (id, number, 'message has no body', true);
    return internal.invalid('message_has_no_body');
  end if;
  return internal.ok(jsonb_build_object(
    'from', message.from_number, 'to', message.to_number, 'body', message.body,
    'idempotency_key', root.idempotency_key, 'attempt', number,
    'since', (select min(s.created_at) from comms.send_sms_task_scheduled s where s.send_sms_task_id = id)
  ));
end $$;

create function comms.record_sms_success(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  original jsonb := coalesce(payload -> 'original_payload', payload);
  id bigint := internal.to_id(original -> 'send_sms_task_id');
  number bigint := internal.to_id(original -> 'attempt');
begin
  perform queues.require_task('comms.record_sms_success', payload);
  perform from comms.send_sms_task t where t.send_sms_task_id = id for update;
  perform from comms.send_sms_task_scheduled s where s.send_sms_task_id = id and s.attempt = number;
  if not found then
    return internal.invalid('attempt_not_found');
  end if;
  perform from comms.send_sms_task_failed f where f.send_sms_task_id = id and f.attempt = number;
  if found then
    return internal.invalid('attempt_has_failed');
  end if;
  insert into comms.send_sms_task_succeeded (send_sms_task_id, attempt, worker_payload)
  values (id, number, payload -> 'worker_payload')
  on conflict do nothing;
  return internal.ok();
end $$;

create function comms.record_sms_failure(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  original jsonb := coalesce(payload -> 'original_payload', payload);
  id bigint := internal.to_id(original -> 'send_sms_task_id');
  number bigint := internal.to_id(original -> 'attempt');
begin
  perform queues.require_task('comms.record_sms_failure', payload);
  perform from comms.send_sms_task t where t.send_sms_task_id = id for update;
  perform from comms.send_sms_task_scheduled s where s.send_sms_task_id = id and s.attempt = number;
  if not found then
    return internal.invalid('attempt_not_found');
  end if;
  perform from comms.send_sms_task_succeeded d where d.send_sms_task_id = id and d.attempt = number;
  if found then
    return internal.invalid('attempt_has_succeeded');
  end if;
  insert into comms.send_sms_task_failed (send_sms_task_id, attempt, error_message)
  values (id, number, left(coalesce(payload ->> 'error', 'unknown'), 8192))
  on conflict do nothing;
  return internal.ok();
end $$;

-- Begins a send of a message that exists.
create function comms.kickoff_send_sms_task(message_id bigint, scheduled_at timestamptz default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint;
begin
  if not exists (select from comms.sms_message m where m.message_id = kickoff_send_sms_task.message_id) then
    raise exception 'SMS message % does not exist', kickoff_send_sms_task.message_id using errcode = 'no_data_found';
  end if;
  insert into comms.send_sms_task (message_id) values (kickoff_send_sms_task.message_id) returning send_sms_task_id into id;
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', 'comms.send_sms_supervisor', 'send_sms_task_id', id
  ), kickoff_send_sms_task.scheduled_at);
  return id;
end $$;

create function comms.create_and_kickoff_sms_task(to_number text, body text, from_number text default null, scheduled_at timestamptz default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint;
begin
  if coalesce(to_number, '') !~ '^[+][1-9][0-9]{1,14}$' or body is null or length(body) > 1600 then
    raise exception 'an SMS needs a recipient like +491701234567 and a body of at most 1,600 characters' using errcode = 'invalid_parameter_value';
  end if;
  insert into comms.message (channel) values ('sms') returning message_id into id;
  insert into comms.sms_message (message_id, from_number, to_number, body)
  values (id, create_and_kickoff_sms_task.from_number, create_and_kickoff_sms_task.to_number, create_and_kickoff_sms_task.body);
  return comms.kickoff_send_sms_task(id, create_and_kickoff_sms_task.scheduled_at);
end $$;

select internal.allow_function(name)
from unnest(array['comms.send_sms_supervisor', 'comms.get_sms_payload', 'comms.record_sms_success', 'comms.record_sms_failure']) as name;

reset role;
