-- The functions of the queue. Every one that ends or extends a claim is guarded
-- by its token, and every one that the worker may execute bounds what it is
-- given: the worker is not trusted.

-- queues.enqueue is for the application, for supervisors and for handlers. The
-- worker never enqueues.
create function queues.enqueue(task_type text, payload jsonb, scheduled_at timestamptz default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint;
begin
  if coalesce(jsonb_typeof(enqueue.payload), 'object') <> 'object' then
    raise exception 'the payload of a task must be an object' using errcode = 'invalid_parameter_value';
  end if;
  insert into queues.task (task_type, payload, scheduled_at)
  values (enqueue.task_type, coalesce(enqueue.payload, '{}'), coalesce(enqueue.scheduled_at, queues.now()))
  returning task_id into id;
  return id;
end $$;

-- An empty queue is no row, not a row of nulls.
create function queues.dequeue_next_available_tasks(worker text, task_types text[], max_tasks integer, lease interval)
returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  most integer := least(max_tasks, 1000);
  until timestamptz := queues.now() + greatest(interval '1 second', least(lease, interval '1 hour'));
begin
  return query
  with due as (
    select candidate.task_id
    from unnest(task_types) as handled (task_type)
    cross join lateral (
      select t.task_id, t.scheduled_at
      from queues.task t
      where t.task_type = handled.task_type and t.status = 'pending' and t.scheduled_at <= queues.now()
      order by t.scheduled_at, t.task_id
      limit most
      for update skip locked
    ) candidate
    order by candidate.scheduled_at, candidate.task_id
    limit most
  ), claimed as (
    update queues.task t
    set status = 'processing', dequeued_at = queues.now(), worker = left(dequeue_next_available_tasks.worker, 128),
      token = gen_random_uuid(), lease_expires_at = until
    from due
    where t.task_id = due.task_id
    returning t.*
  )
  select c.* from claimed c order by c.scheduled_at, c.task_id;
end $$;

-- One task of any type, for workers written in another language.
create function queues.dequeue_next_available_task() returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
  select t.*
  from queues.dequeue_next_available_tasks('', (
    select array_agg(distinct waiting.task_type::text) from queues.task waiting where waiting.status = 'pending'
  ), 1, interval '5 minutes') t;
end $$;

-- Returns expired claims to the queue, or quarantines what has lost its worker
-- too often. Those that lost the same worker are run again one after the other:
-- one of them may have killed it.
create function queues.reap_expired_tasks(max_crashes integer) returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  most integer := greatest(max_crashes, 2);
begin
  return query
  with expired as (
    select t.task_id
    from queues.task t
    where t.status = 'processing' and t.lease_expires_at <= queues.now()
    order by t.lease_expires_at
    limit 100
    for update skip locked
  ), waiting as (
    select t.task_id, t.crashes * interval '1 second' + (row_number() over (order by t.task_id) - 1) * interval '100 milliseconds' as pause
    from queues.task t
    join expired on expired.task_id = t.task_id
  ), reaped as (
    update queues.task t
    set status = case when t.crashes + 1 >= most then 'quarantined' else 'pending' end,
      finished_at = case when t.crashes + 1 >= most then queues.now() end,
      crashes = t.crashes + 1, scheduled_at = queues.now() + waiting.pause,
      worker = null, token = null, lease_expires_at = null
    from waiting
    where t.task_id = waiting.task_id
    returning t.*
  ), told as (
    insert into queues.error (task_id, error_message)
    select r.task_id, case when r.status = 'quarantined' then 'worker was lost while the task ran; quarantined' else 'worker was lost while the task ran' end
    from reaped r
  )
  select r.* from reaped r;
end $$;

-- Tells queues.error of the oldest due task of each type that no worker seems to
-- know, once. The task waits: a later deployment may know it.
create function queues.report_unrouted_tasks(task_types text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  told bigint;
begin
  with recursive types (task_type) as (
    (select t.task_type::text from queues.task t where t.status = 'pending' order by t.task_type limit 1)
    union all
    select (
      select t.task_type::text from queues.task t
      where t.status = 'pending' and t.task_type > types.task_type
      order by t.task_type limit 1
    )
    from types
    where types.task_type is not null
  ), strays as (
    select head.task_id
    from types
    cross join lateral (
      select t.task_id, t.unrouted
      from queues.task t
      where t.task_type = types.task_type and t.status = 'pending' and t.scheduled_at <= queues.now() - interval '1 minute'
      order by t.scheduled_at, t.task_id
      limit 1
      for update skip locked
    ) head
    where types.task_type <> all (task_types) and not head.unrouted
      and not exists (select from queues.task t where t.task_type = types.task_type and t.status = 'processing')
  ), marked as (
    update queues.task t
    set unrouted = true
    from strays
    where t.task_id = strays.task_id
    returning t.task_id, t.task_type
  )
  insert into queues.error (task_id, error_message)
  select m.task_id, 'no worker knows task type ' || m.task_type from marked m;
  get diagnostics told = row_count;
  return told;
end $$;

-- Microseconds until a task of these types is due, or a claim expires.
create function queues.next_task_in(task_types text[]) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (extract(epoch from min(at) - queues.now()) * 1000000)::bigint
  from (
    select head.scheduled_at as at
    from unnest(task_types) as handled (task_type)
    cross join lateral (
      select t.scheduled_at
      from queues.task t
      where t.task_type = handled.task_type and t.status = 'pending'
      order by t.scheduled_at, t.task_id
      limit 1
    ) head
    union all
    (select t.lease_expires_at from queues.task t where t.status = 'processing' order by t.lease_expires_at limit 1)
  ) wakes
$$;

-- Renews leases, in the order of the ids, and returns the tasks that are still
-- held.
create function queues.heartbeat(task_ids bigint[], tokens uuid[], lease interval) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
  with held as (
    select t.task_id
    from unnest(task_ids, tokens) as claim (task_id, token)
    join queues.task t on t.task_id = claim.task_id and t.token = claim.token
    order by t.task_id
    for update of t
  )
  update queues.task t
  set lease_expires_at = queues.now() + greatest(interval '1 second', least(lease, interval '1 hour'))
  from held
  where t.task_id = held.task_id
  returning t.task_id;
end $$;

-- Gives claims back at no cost.
create function queues.release(task_ids bigint[], tokens uuid[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n bigint;
begin
  update queues.task t
  set status = 'pending', worker = null, token = null, lease_expires_at = null
  from unnest(task_ids, tokens) as claim (task_id, token)
  where t.task_id = claim.task_id and t.token = claim.token;
  get diagnostics n = row_count;
  return n;
end $$;

-- Locks a task that is held, and remembers it for queues.require_task until the
-- transaction ends. Whoever does not hold it gets no further.
create function queues.hold(task_id bigint, token uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from queues.task t where t.task_id = hold.task_id and t.token = hold.token for update;
  if not found then
    raise exception 'task % is not held by this token', hold.task_id using errcode = 'PRD01';
  end if;
  perform set_config('perdure.task_id', hold.task_id::text, true), set_config('perdure.task_token', hold.token::text, true);
end $$;

create function queues.append_error(task_id bigint, token uuid, error_message text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into queues.error (task_id, error_message)
  select t.task_id, left(append_error.error_message, 8192)
  from queues.task t
  where t.task_id = append_error.task_id and t.token = append_error.token;
  return found;
end $$;

create function queues.complete(task_id bigint, token uuid) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update queues.task t
  set status = 'completed', attempts = t.attempts + 1, finished_at = queues.now(), outcome = null,
    worker = null, token = null, lease_expires_at = null
  where t.task_id = complete.task_id and t.token = complete.token;
  return found;
end $$;

-- Ends a claim with an error: for good, or until it is tried again. An outcome
-- that is given is kept, so that only its handler is called then.
create function queues.fail(task_id bigint, token uuid, error_message text, retry_in interval default null, outcome jsonb default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not queues.append_error(fail.task_id, fail.token, fail.error_message) then
    return false;
  end if;
  update queues.task t
  set status = case when retry_in is null then 'failed' else 'pending' end, attempts = t.attempts + 1,
    scheduled_at = case when retry_in is null then t.scheduled_at else queues.now() + greatest(interval '0', least(retry_in, interval '1 day')) end,
    finished_at = case when retry_in is null then queues.now() end,
    outcome = coalesce(fail.outcome, t.outcome), worker = null, token = null, lease_expires_at = null
  where t.task_id = fail.task_id and t.token = fail.token;
  return found;
end $$;

-- Removes tasks that were done some time ago, at least an hour, up to a number.
create function queues.sweep(keep interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n bigint;
begin
  with old as (
    select t.task_id
    from queues.task t
    where t.status in ('completed', 'cancelled') and t.finished_at <= queues.now() - greatest(keep, interval '1 hour')
    order by t.finished_at
    limit 1000
    for update skip locked
  )
  delete from queues.task t
  using old
  where t.task_id = old.task_id;
  get diagnostics n = row_count;
  return n;
end $$;

-- For supervisors. True if nothing more will come of a task by itself: it has
-- ended, or its lease is over and nobody has taken it again for a minute.
create function queues.is_over(task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select not exists (
    select from queues.task t
    where t.task_id = is_over.task_id and (
      t.status = 'pending' and (t.dequeued_at is null or t.scheduled_at > queues.now() - interval '1 minute')
      or t.status = 'processing' and t.lease_expires_at > queues.now() - interval '1 minute'
    )
  )
$$;

-- For supervisors: whoever still runs the task cannot record an outcome any more.
create function queues.cancel(task_id bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  update queues.task t
  set status = 'cancelled', finished_at = queues.now(), worker = null, token = null, lease_expires_at = null
  where t.task_id = cancel.task_id and t.status in ('pending', 'processing');
  return found;
end $$;
