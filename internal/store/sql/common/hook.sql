-- Durable hooks: what is equal for all databases. Every statement that ends or
-- extends a claim is guarded by its token.

-- name: HookGet
select id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id,
  created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, lease_expires_at
from perdure.hooks
where id = ?

-- name: HookDelete
delete from perdure.hooks
where id = ? and status <> 'processing'

-- name: HookCrowd
-- How many hooks each process runs, suspects and others.
select worker, case when batch_limit is null then 0 else 1 end, count(*)
from perdure.hooks
where status = 'processing' and namespace = ?
group by worker, case when batch_limit is null then 0 else 1 end
