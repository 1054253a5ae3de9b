-- Pauses, see ADR 21. Claims read them in their own statements, so a pause holds for every claim
-- that begins after its commit.
create table perdure.pauses (
  -- What is paused: queue:, fsm:, hook:, alarm: or task: and a name.
  target text not null primary key,
  reason text not null,
  -- The operator or the program that paused it.
  actor text not null,
  paused_at timestamptz not null,
  -- The end of the pause. Null: until it is resumed.
  until_at timestamptz
);

grant usage on schema perdure to perdure_owner;
grant select on perdure.pauses to perdure_owner;

set role perdure_owner;

-- Returns the types of tasks that are not paused.
create function queues.unpaused(task_types text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(handled.task_type), '{}')
  from unnest(task_types) as handled (task_type)
  where not exists (
    select from perdure.pauses p
    where p.target = 'task:' || handled.task_type and (p.until_at is null or p.until_at > queues.now())
  )
$$;

revoke all on function queues.unpaused(text[]) from public;

-- As before, without the types that are paused.
create or replace function queues.dequeue_next_available_tasks(worker text, task_types text[], max_tasks integer, lease interval, lowest integer, plain boolean)
returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  most integer := least(max_tasks, 1000);
  until timestamptz := queues.now() + greatest(interval '1 second', least(lease, interval '1 hour'));
begin
  return query
  with due as (
    select candidate.task_id
    from unnest(queues.unpaused(task_types)) as handled (task_type)
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

-- As before, without the types that are paused, and with the end of the first pause.
create or replace function queues.next_task_in(task_types text[], lowest integer) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (extract(epoch from least(greatest(min(at), '0001-01-01 00:00:00+00'), '9999-12-31 00:00:00+00') - queues.now()) * 1000000)::bigint
  from (
    select head.scheduled_at as at
    from unnest(queues.unpaused(task_types)) as handled (task_type)
    cross join lateral (
      select t.scheduled_at
      from queues.task t
      where t.task_type = handled.task_type and t.status = 'pending' and (t.batch_limit is null or t.batch_limit >= lowest)
      order by t.scheduled_at, t.task_id
      limit 1
    ) head
    union all
    (select t.lease_expires_at from queues.task t where t.status = 'processing' order by t.lease_expires_at limit 1)
    union all
    select p.until_at from perdure.pauses p where p.target like 'task:%' and p.until_at > queues.now()
  ) wakes
  having min(at) is not null
$$;

reset role;
