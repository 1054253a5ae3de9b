-- Due times are finite, and a task that waits for a worker is not over.

-- A due time lies in the range that all databases and Go store exactly. Anything
-- else, such as infinity, is refused. Rows outside the range are brought into it.
do $$
declare
  lowest constant text := '0001-01-01 00:00:00+00';
  highest constant text := '9999-12-31 00:00:00+00';
  due record;
begin
  for due in
    values ('perdure', 'hooks', 'due_at'), ('perdure', 'hooks', 'next_attempt_at'), ('perdure', 'instances', 'due_at'),
      ('perdure', 'instances', 'deadline_at'), ('perdure', 'ready', 'due_at'), ('perdure', 'waiting', 'deadline_at'),
      ('perdure', 'barriers', 'deadline_at'), ('perdure', 'deadlines', 'at'), ('perdure', 'schedules', 'next_at'),
      ('perdure', 'alarms', 'due_at'), ('perdure', 'alarms', 'occurs_at'), ('perdure', 'alarms', 'base_at'),
      ('queues', 'task', 'scheduled_at')
  loop
    if due.column1 = 'queues' then
      set role perdure_owner;
    end if;
    execute format('alter table %I.%I add constraint %I check (%I between %L::timestamptz and %L::timestamptz) not valid',
      due.column1, due.column2, due.column2 || '_' || due.column3 || '_range', due.column3, lowest, highest);
    execute format('update %1$I.%2$I set %3$I = least(greatest(%3$I, %4$L::timestamptz), %5$L::timestamptz) where %3$I not between %4$L::timestamptz and %5$L::timestamptz',
      due.column1, due.column2, due.column3, lowest, highest);
  end loop;
  reset role;
end $$;

set role perdure_owner;

create or replace function queues.enqueue(task_type text, payload jsonb, scheduled_at timestamptz default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  id bigint;
begin
  if coalesce(jsonb_typeof(enqueue.payload), 'object') <> 'object' then
    raise exception 'the payload of a task must be an object' using errcode = 'invalid_parameter_value';
  end if;
  if enqueue.scheduled_at not between timestamptz '0001-01-01 00:00:00+00' and timestamptz '9999-12-31 00:00:00+00' then
    raise exception 'the time of a task must be between the years 1 and 9999, got %', enqueue.scheduled_at using errcode = 'invalid_parameter_value';
  end if;
  insert into queues.task (task_type, payload, scheduled_at)
  values (enqueue.task_type, coalesce(enqueue.payload, '{}'), coalesce(enqueue.scheduled_at, queues.now()))
  returning task_id into id;
  return id;
end $$;

-- Microseconds until a task of these types is due, or a claim expires.
create or replace function queues.next_task_in(task_types text[]) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (extract(epoch from least(greatest(min(at), '0001-01-01 00:00:00+00'), '9999-12-31 00:00:00+00') - queues.now()) * 1000000)::bigint
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
  having min(at) is not null
$$;

-- Returns unstarted claims without counting an attempt. The task is as before its
-- claim.
create or replace function queues.release(task_ids bigint[], tokens uuid[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n bigint;
begin
  update queues.task t
  set status = 'pending', dequeued_at = null, worker = null, token = null, lease_expires_at = null
  from unnest(task_ids, tokens) as claim (task_id, token)
  where t.task_id = claim.task_id and t.token = claim.token;
  get diagnostics n = row_count;
  return n;
end $$;

-- For supervisors. True if the task will not record an outcome: it is finished,
-- or its lease expired more than a minute ago. A pending task is not over, however
-- late it is: a worker that has time for it will run it.
create or replace function queues.is_over(task_id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select not exists (
    select from queues.task t
    where t.task_id = is_over.task_id and (
      t.status = 'pending' or t.status = 'processing' and t.lease_expires_at > queues.now() - interval '1 minute'
    )
  )
$$;

reset role;
