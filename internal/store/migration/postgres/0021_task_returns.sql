-- A worker that is alive returns its own claims, and does not count them as crashes.

set role perdure_owner;

-- Returns expired claims to the queue. Those of the worker itself, own, do not count as
-- crashes: it is alive. Without others, the claims of other workers wait. Otherwise
-- their tasks count a crash each. After two crashes a task is a suspect. Its batch limit
-- becomes half of the suspects that its worker ran. Tasks that crash alone are
-- quarantined. The rules are those of core.Judge.
create function queues.reap_expired_tasks(max_crashes integer, own text, others boolean) returns setof queues.task
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  most integer := greatest(max_crashes, 2);
  self text := left(own, 128);
begin
  return query
  with expired as (
    select t.task_id, t.crashes, t.batch_limit, t.worker, coalesce(t.worker = self, false) as mine
    from queues.task t
    where t.status = 'processing' and t.lease_expires_at <= queues.now() and (reap_expired_tasks.others or t.worker = self)
    order by t.lease_expires_at
    limit 100
    for update skip locked
  ), released as (
    update queues.task t
    set status = 'pending', worker = null, token = null, lease_expires_at = null
    from expired e
    where e.mine and t.task_id = e.task_id
  ), lost as (
    select e.task_id, e.crashes, e.batch_limit, crowd.suspects, crowd.others,
      coalesce(e.batch_limit <= 1 and crowd.suspects <= 1, false) as alone
    from expired e
    cross join lateral (
      select count(o.batch_limit) as suspects, count(*) - count(o.batch_limit) as others
      from queues.task o
      where o.status = 'processing' and o.worker is not distinct from e.worker
    ) crowd
    where not e.mine
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

-- For workers that do not tell who they are: every expired claim counts as a crash.
create or replace function queues.reap_expired_tasks(max_crashes integer) returns setof queues.task
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select t.* from queues.reap_expired_tasks(max_crashes, null, true) t
$$;

-- Gives a claim back for a while, at no cost, with an error.
create function queues.postpone(task_id bigint, token uuid, error_message text, delay interval) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not queues.append_error(postpone.task_id, postpone.token, postpone.error_message) then
    return false;
  end if;
  update queues.task t
  set status = 'pending', scheduled_at = queues.now() + greatest(interval '0', least(delay, interval '1 day')),
    worker = null, token = null, lease_expires_at = null
  where t.task_id = postpone.task_id and t.token = postpone.token;
  return found;
end $$;

grant execute on function
  queues.reap_expired_tasks(integer, text, boolean),
  queues.postpone(bigint, uuid, text, interval)
to perdure_worker;

reset role;
