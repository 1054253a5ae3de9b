-- Tasks that may have killed their worker are found by bisecting, like other work.

set role perdure_owner;

-- The number of suspects that may run together with this one in a worker, itself
-- included. From 1 on, every crash alone lowers it by one. Null: not a suspect.
alter table queues.task add column batch_limit integer;

-- Returns expired claims to the queue, or quarantines tasks that crashed alone. After
-- two crashes a task is a suspect. Its batch limit becomes half of the suspects that
-- its worker ran. The rules are those of core.Judge.
create or replace function queues.reap_expired_tasks(max_crashes integer) returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  most integer := greatest(max_crashes, 2);
begin
  return query
  with expired as (
    select t.task_id, t.crashes, t.batch_limit, t.worker
    from queues.task t
    where t.status = 'processing' and t.lease_expires_at <= queues.now()
    order by t.lease_expires_at
    limit 100
    for update skip locked
  ), lost as (
    select e.task_id, e.crashes, e.batch_limit, crowd.suspects, crowd.others,
      coalesce(e.batch_limit <= 1 and crowd.suspects <= 1, false) as alone
    from expired e
    cross join lateral (
      select count(o.batch_limit) as suspects, count(*) - count(o.batch_limit) as others
      from queues.task o
      where o.status = 'processing' and o.worker is not distinct from e.worker
    ) crowd
  ), verdict as (
    select l.task_id,
      case
        when l.batch_limit is null and l.crashes = 0 then null
        when l.alone then l.batch_limit - 1
        else greatest((case when l.batch_limit is null then l.others else l.suspects end + 1) / 2, 1)
      end as batch_limit,
      case when l.alone then l.crashes else 0 end * interval '1 second' as pause,
      l.alone and l.crashes + 1 >= most and 2 - l.batch_limit >= greatest(most - 2, case when l.others > 0 then 3 else 1 end) as poison
    from lost l
  ), reaped as (
    update queues.task t
    set status = case when verdict.poison then 'quarantined' else 'pending' end,
      finished_at = case when verdict.poison then queues.now() end,
      crashes = t.crashes + 1, batch_limit = verdict.batch_limit, scheduled_at = queues.now() + verdict.pause,
      worker = null, token = null, lease_expires_at = null
    from verdict
    where t.task_id = verdict.task_id
    returning t.*
  ), told as (
    insert into queues.error (task_id, error_message)
    select r.task_id, case when r.status = 'quarantined' then 'worker was lost while the task ran; quarantined' else 'worker was lost while the task ran' end
    from reaped r
  )
  select r.* from reaped r;
end $$;

-- Claims tasks, and suspects whose batch limit is at least the lowest. Without plain it
-- claims only suspects.
create function queues.dequeue_next_available_tasks(worker text, task_types text[], max_tasks integer, lease interval, lowest integer, plain boolean)
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
        and (plain and t.batch_limit is null or t.batch_limit >= lowest)
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

-- For workers that know nothing of batch limits: a worker gets one suspect at a time.
create or replace function queues.dequeue_next_available_tasks(worker text, task_types text[], max_tasks integer, lease interval)
returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  suspects integer := 0;
begin
  if not exists (
    select from queues.task t
    where t.status = 'processing' and t.batch_limit is not null and t.worker = left(dequeue_next_available_tasks.worker, 128)
  ) then
    return query
    select t.* from queues.dequeue_next_available_tasks(worker, task_types, least(max_tasks, 1), lease, -2147483648, false) t;
    get diagnostics suspects = row_count;
  end if;
  return query
  select t.* from queues.dequeue_next_available_tasks(worker, task_types, max_tasks - suspects, lease, 2147483647, true) t;
end $$;

-- Microseconds until a task of these types is due, or a claim expires. Suspects count
-- if their batch limit is at least the lowest.
create function queues.next_task_in(task_types text[], lowest integer) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (extract(epoch from least(greatest(min(at), '0001-01-01 00:00:00+00'), '9999-12-31 00:00:00+00') - queues.now()) * 1000000)::bigint
  from (
    select head.scheduled_at as at
    from unnest(task_types) as handled (task_type)
    cross join lateral (
      select t.scheduled_at
      from queues.task t
      where t.task_type = handled.task_type and t.status = 'pending' and (t.batch_limit is null or t.batch_limit >= lowest)
      order by t.scheduled_at, t.task_id
      limit 1
    ) head
    union all
    (select t.lease_expires_at from queues.task t where t.status = 'processing' order by t.lease_expires_at limit 1)
  ) wakes
  having min(at) is not null
$$;

-- For workers that know nothing of batch limits. Suspects count while none of them
-- runs.
create or replace function queues.next_task_in(task_types text[]) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select queues.next_task_in(task_types, case
    when exists (select from queues.task t where t.status = 'processing' and t.batch_limit is not null) then 2147483647
    else -2147483648
  end)
$$;

-- Ends a claim with an error: permanently, or until it is retried. An outcome that is
-- given is kept, so that only its handler is called then. The worker survived the
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
    outcome = coalesce(fail.outcome, t.outcome), worker = null, token = null, lease_expires_at = null
  where t.task_id = fail.task_id and t.token = fail.token;
  return found;
end $$;

grant execute on function
  queues.dequeue_next_available_tasks(text, text[], integer, interval, integer, boolean),
  queues.next_task_in(text[], integer)
to perdure_worker;

reset role;
