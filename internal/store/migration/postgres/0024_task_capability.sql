-- What a worker may do with a task that it holds: the function of the stage that the
-- task is in, with the payload of that stage.

set role perdure_owner;

-- The first statement of every function that the worker may run. The worker can call
-- it with any payload; this lets it act only on the task that it holds, in one of four
-- ways:
--   db_function of a task of that type: with the payload that is stored;
--   before_handler, while nothing was sent: with the payload that is stored;
--   success_handler: with {"original_payload": the stored one, "worker_payload": …};
--   error_handler: with {"original_payload": the stored one, "error": "…"}.
-- A task has one outcome: the first handler that is called records it, and no other
-- outcome is accepted after that. Members of the owner may do without a task.
create or replace function queues.require_task(function_name text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  t queues.task;
  report jsonb;
begin
  if pg_has_role(session_user, 'perdure_owner', 'member') then
    return;
  end if;
  select held.* into t
  from queues.task held
  where held.task_id = internal.to_id(to_jsonb(current_setting('perdure.task_id', true))) and held.status = 'processing'
    and held.token::text = current_setting('perdure.task_token', true);
  if t.task_id is not null and require_task.function_name is not null and jsonb_typeof(require_task.payload) = 'object' then
    if t.task_type = 'db_function' then
      if t.payload ->> 'db_function' = require_task.function_name and t.payload = require_task.payload then
        return;
      end if;
    elsif t.payload ->> 'before_handler' = require_task.function_name and t.payload = require_task.payload and t.outcome is null then
      return;
    elsif require_task.payload -> 'original_payload' = t.payload then
      report := require_task.payload - 'original_payload';
      if internal.is_outcome(report, t.payload, require_task.function_name) and internal.same_outcome(coalesce(t.outcome, report), report) then
        if t.outcome is null then
          update queues.task held set outcome = report where held.task_id = t.task_id;
        end if;
        return;
      end if;
    end if;
  end if;
  raise exception 'no task that is held lets % run with this payload', require_task.function_name using errcode = 'insufficient_privilege';
end $$;

-- Whether a report is what the function, as a handler of the task, is told: that it
-- was done, or why not.
create function internal.is_outcome(report jsonb, task_payload jsonb, function_name text) returns boolean
language sql immutable
return coalesce(
  task_payload ->> 'success_handler' = function_name and report ? 'worker_payload' and report - 'worker_payload' = '{}'
  or task_payload ->> 'error_handler' = function_name and jsonb_typeof(report -> 'error') = 'string' and report ->> 'error' <> '' and report - 'error' = '{}', false);

-- Whether two reports are about the same outcome. One without a result may leave out
-- the key.
create function internal.same_outcome(one jsonb, other jsonb) returns boolean
language sql immutable
return coalesce(one ->> 'error', '') = coalesce(other ->> 'error', '')
  and coalesce(one -> 'worker_payload', 'null') = coalesce(other -> 'worker_payload', 'null');

-- Ends a claim with an error: permanently, or until it is retried. The first outcome of
-- the task is kept, so that only its handler is called then. The worker survived the
-- task, so it is no suspect.
create or replace function queues.fail(task_id bigint, token uuid, error_message text, retry_in interval default null, outcome jsonb default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not queues.append_error(fail.task_id, fail.token, fail.error_message) then
    return false;
  end if;
  update queues.task t
  set status = case when retry_in is null then 'failed' else 'pending' end, attempts = t.attempts + 1, batch_limit = null,
    scheduled_at = case when retry_in is null then t.scheduled_at else queues.now() + greatest(interval '0', least(retry_in, interval '1 day')) end,
    finished_at = case when retry_in is null then queues.now() end,
    outcome = coalesce(t.outcome, fail.outcome), worker = null, token = null, lease_expires_at = null
  where t.task_id = fail.task_id and t.token = fail.token;
  return found;
end $$;

-- For the facts of business processes, as a trigger before update or delete.
create function internal.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '%.% is append-only', tg_table_schema, tg_table_name using errcode = 'object_not_in_prerequisite_state';
end $$;

-- The supervisors enqueue themselves again with keys that they know.

create or replace function comms.send_email_supervisor(payload jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  max_attempts constant integer := 2;
  max_runs constant integer := 50;
  id bigint := internal.to_id(payload -> 'send_email_task_id');
  run_count bigint := coalesce(internal.to_id(payload -> 'run_count'), 0) + 1;
  idle_runs bigint := coalesce(internal.to_id(payload -> 'idle_runs'), 0) + 1;
  outstanding comms.send_email_task_scheduled;
  failures integer;
  new_attempt integer;
begin
  perform queues.require_task('comms.send_email_supervisor', payload);
  if id is null then
    return internal.invalid('missing_send_email_task_id');
  end if;
  perform from comms.send_email_task t where t.send_email_task_id = id for update;
  if not found then
    return internal.invalid('send_email_task_not_found');
  end if;
  if comms.has_send_email_task_succeeded(id) then
    return internal.ok();
  end if;
  outstanding := comms.outstanding_send_email_attempt(id);
  if outstanding.attempt is not null and (queues.is_over(outstanding.task_id) or run_count > max_runs) then
    perform queues.cancel(outstanding.task_id);
    insert into comms.send_email_task_failed (send_email_task_id, attempt, error_message, permanent)
    values (id, outstanding.attempt, case when run_count > max_runs then 'run cap reached' else 'attempt ended without an outcome' end, run_count > max_runs);
    outstanding := null;
  end if;
  failures := comms.count_send_email_task_failures(id);
  if run_count > max_runs then
    return internal.invalid('run_cap_reached for send_email_task ' || id);
  end if;
  if failures >= max_attempts or comms.is_send_email_task_refused(id) then
    return internal.ok();
  end if;
  if comms.count_send_email_task_scheduled(id) <= failures then
    new_attempt := failures + 1;
    idle_runs := 0;
    insert into comms.send_email_task_scheduled (send_email_task_id, attempt, task_id)
    values (id, new_attempt, queues.enqueue('email', jsonb_build_object(
      'task_type', 'email', 'send_email_task_id', id, 'attempt', new_attempt,
      'before_handler', 'comms.get_email_payload', 'success_handler', 'comms.record_email_success', 'error_handler', 'comms.record_email_failure'
    )));
  end if;
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', 'comms.send_email_supervisor', 'send_email_task_id', id, 'run_count', run_count, 'idle_runs', idle_runs
  ), queues.now() + comms.supervisor_delay(failures, idle_runs));
  return internal.ok();
end $$;

create or replace function comms.send_sms_supervisor(payload jsonb) returns jsonb
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
  perform queues.enqueue('db_function', jsonb_build_object(
    'task_type', 'db_function', 'db_function', 'comms.send_sms_supervisor', 'send_sms_task_id', id, 'run_count', run_count, 'idle_runs', idle_runs
  ), queues.now() + comms.supervisor_delay(failures, idle_runs));
  return internal.ok();
end $$;

reset role;
