-- Alarms of users. Those of machines are not touched here: every statement says
-- kind = 'custom'. Every statement that ends or extends a claim is guarded by its token,
-- and what records an outcome also by the generation.

-- name: AlarmGet
select actor_type, actor_id, alarm_id, type, status, priority, due_at, occurs_at, sequence, generation, payload,
  every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace,
  created_at, worker, lease_expires_at, last_attempt_at, batch_limit
from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ?

-- name: AlarmCancel
delete from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ?
returning status

-- name: AlarmRelease
update perdure.alarms
set status = 'pending', worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ?

-- name: AlarmDone
delete from perdure.alarms
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ? and coalesce(generation, 0) = ?

-- name: AlarmYield
-- Ends a claim of an alarm that was scheduled anew while it ran.
update perdure.alarms
set status = 'pending', crashes = 0, batch_limit = null, worker = null, token = null, lease_expires_at = null
where kind = 'custom' and actor_type = ? and actor_id = ? and alarm_id = ? and token = ?

-- name: AlarmCrowd
-- The number of alarms that each process runs, suspects and others.
select worker, case when batch_limit is null then 0 else 1 end, count(*)
from perdure.alarms
where kind = 'custom' and status = 'processing'
group by worker, case when batch_limit is null then 0 else 1 end

-- name: AlarmCount
select status, count(*)
from perdure.alarms
{where}
group by status
