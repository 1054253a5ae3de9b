-- Tasks: the queue. now is always the last value. Every statement that ends or
-- extends a claim is guarded by its token. Lists of values are JSON arrays.

-- name: TaskEnqueue
-- The task is due at a time, or after a delay from now.
insert into queues_task (task_type, payload, enqueued_at, scheduled_at)
values (?1, ?2, ?5, coalesce(?3, ?5 + ?4))
returning task_id

-- name: TaskTrace
-- Sets the trace of the task that was enqueued last.
update queues_task
set trace = ?
where task_id = (select max(task_id) from queues_task)

-- name: TaskClaim
-- Reads only the oldest due rows of each type.
update queues_task
set status = 'processing', dequeued_at = ?6, worker = ?1, token = lower(hex(randomblob(16))), lease_expires_at = ?6 + ?4
where task_id in (
  select t.task_id
  from jsonb_each(?2) handled
  cross join queues_task t
  where t.task_id in (
    select task_id
    from queues_task
    where task_type = handled.value and status = 'pending' and scheduled_at <= ?6 and (batch_limit is null or batch_limit >= ?5)
    order by scheduled_at, task_id
    limit ?3
  )
    and not {paused task handled.value ?6}
  order by t.scheduled_at, t.task_id
  limit ?3
)
returning task_id, task_type, payload, attempts, crashes, batch_limit, token, outcome, enqueued_at, scheduled_at, trace

-- name: TaskReapOwn
-- A worker's own expired claims are not crashes: the worker is alive.
update queues_task
set status = 'pending', worker = null, token = null, lease_expires_at = null
where task_id in (
  select task_id
  from queues_task
  where status = 'processing' and lease_expires_at <= ?2 and worker = ?1
)

-- name: TaskReap
-- After two crashes a task is a suspect. Its batch limit becomes half of the suspects
-- that its worker ran, and only a task that crashes alone is quarantined. core.CrashVerdict
-- has the same rules.
update queues_task
set status = case when verdict.poison then 'quarantined' else 'pending' end,
  finished_at = case when verdict.poison then ?2 end,
  crashes = crashes + 1, batch_limit = verdict.remaining, scheduled_at = ?2 + verdict.pause,
  worker = null, token = null, lease_expires_at = null
from (
  select task_id as expired,
    case
      when batch_limit is null and crashes = 0 then null
      when alone then batch_limit - 1
      else max((case when batch_limit is null then others else suspects end + 1) / 2, 1)
    end as remaining,
    case when alone then crashes else 0 end * 1000000 as pause,
    alone and crashes + 1 >= ?1 and 2 - batch_limit >= max(?1 - 2, case when others > 0 then 3 else 1 end) as poison
  from (
    select task_id, crashes, batch_limit, suspects, others, coalesce(batch_limit <= 1 and suspects <= 1, 0) as alone
    from (
      select t.task_id, t.crashes, t.batch_limit,
        (select count(o.batch_limit) from queues_task o where o.status = 'processing' and o.worker is t.worker) as suspects,
        (select count(*) - count(o.batch_limit) from queues_task o where o.status = 'processing' and o.worker is t.worker) as others
      from queues_task t
      where t.status = 'processing' and t.lease_expires_at <= ?2
      order by t.lease_expires_at
      limit 100
    )
  )
) verdict
where task_id = verdict.expired
returning task_id, task_type, status, crashes

-- name: TaskUnrouted
-- Returns the oldest due task of each type that no worker seems to serve. Each task
-- is reported once.
with recursive types (task_type) as (
  select min(task_type) from queues_task where status = 'pending'
  union all
  select (select min(t.task_type) from queues_task t where t.status = 'pending' and t.task_type > types.task_type)
  from types
  where types.task_type is not null
), heads (task_id) as (
  select (
    select t.task_id from queues_task t
    where t.task_type = types.task_type and t.status = 'pending' and t.scheduled_at <= ?2 - 60000000
    order by t.scheduled_at, t.task_id
    limit 1
  )
  from types
  where types.task_type is not null and types.task_type not in (select value from jsonb_each(?1))
    and not exists (select 1 from queues_task t where t.task_type = types.task_type and t.status = 'processing')
)
update queues_task
set unrouted = 1
where unrouted = 0 and task_id in (select task_id from heads)
returning task_id, task_type

-- name: TaskTell
insert into queues_error (task_id, error_message, created_at)
values (?1, ?2, ?3)

-- name: TaskNext
-- Returns the microseconds until a task of these types is due, or a claim expires.
select min(max(min(at), -62135510400000000), 253402214400000000) - ?3
from (
  select (
    select min(scheduled_at) from queues_task
    where task_type = handled.value and status = 'pending' and (batch_limit is null or batch_limit >= ?2)
  ) as at
  from jsonb_each(?1) handled
  where not {paused task handled.value ?3}
  union all
  select min(lease_expires_at) from queues_task where status = 'processing'
  union all
  select min(until_at) from perdure_pauses where until_at > ?3
)

-- name: TaskExtend
update queues_task
set lease_expires_at = ?3 + ?2
where task_id in (
  select t.task_id from jsonb_each(?1) c cross join queues_task t on t.task_id = c.value ->> 0 and t.token = c.value ->> 1
)
returning task_id

-- name: TaskRelease
update queues_task
set status = 'pending', dequeued_at = null, worker = null, token = null, lease_expires_at = null
where task_id in (
  select t.task_id from jsonb_each(?1) c cross join queues_task t on t.task_id = c.value ->> 0 and t.token = c.value ->> 1
)

-- name: TaskPostpone
-- Returns a claim with an error, without counting an attempt. The task is due after a
-- delay.
insert into queues_error (task_id, error_message, created_at)
select task_id, ?3, ?5
from queues_task
where task_id = ?1 and token = ?2
;
update queues_task
set status = 'pending', scheduled_at = ?5 + ?4, worker = null, token = null, lease_expires_at = null
where task_id = ?1 and token = ?2

-- name: TaskHold
-- This transaction has the write lock, so no other process can claim the tasks before
-- it ends.
select t.task_id
from jsonb_each(?1) c
cross join queues_task t on t.task_id = c.value ->> 0 and t.token = c.value ->> 1

-- name: TaskAppendError
insert into queues_error (task_id, error_message, created_at)
select t.task_id, c.value ->> 2, ?2
from jsonb_each(?1) c
cross join queues_task t on t.task_id = c.value ->> 0 and t.token = c.value ->> 1

-- name: TaskComplete
update queues_task
set status = 'completed', attempts = attempts + 1, finished_at = ?2, outcome = null, worker = null, token = null, lease_expires_at = null
where task_id in (
  select t.task_id from jsonb_each(?1) c cross join queues_task t on t.task_id = c.value ->> 0 and t.token = c.value ->> 1
)

-- name: TaskFail
-- Fails tasks permanently, or until a retry after a delay. A given outcome is kept:
-- the retry then only calls its handler.
insert into queues_error (task_id, error_message, created_at)
select t.task_id, c.value ->> 2, ?2
from jsonb_each(?1) c
cross join queues_task t on t.task_id = c.value ->> 0 and t.token = c.value ->> 1
;
update queues_task
set status = case when c.delay is null then 'failed' else 'pending' end, attempts = attempts + 1, batch_limit = null,
  scheduled_at = coalesce(?2 + c.delay, scheduled_at), finished_at = case when c.delay is null then ?2 end,
  outcome = coalesce(c.kept, outcome), worker = null, token = null, lease_expires_at = null
from (
  select value ->> 0 as id, value ->> 1 as held_by, value ->> 3 as delay, value ->> 4 as kept from jsonb_each(?1)
) c
where task_id = c.id and token = c.held_by

-- name: TaskSweep
delete from queues_task
where task_id in (
  select task_id
  from queues_task
  where status in ('completed', 'cancelled') and finished_at <= ?2 - ?1
  order by finished_at
  limit 1000
)

-- name: TaskSweepDead
delete from queues_task
where task_id in (
  select task_id
  from queues_task
  where status in ('failed', 'quarantined') and finished_at <= ?2 - ?1
  order by finished_at
  limit 1000
)
