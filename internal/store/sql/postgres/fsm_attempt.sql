-- Attempts of steps, on PostgreSQL. Tests pass the time as now; otherwise now is null
-- and the server's clock decides.

-- name: InstanceAttempt
-- Records failed steps. The leases are locked, so no other process records attempts of
-- these instances.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = o.id), 0) + 1,
  o.step, o.attempt, 'failed', o.error, ?, t.now - o.took * interval '1 microsecond', t.now
from unnest(?::text[], ?::text[], ?::integer[], ?::text[], ?::bigint[]) as o (id, step, attempt, error, took),
  (select coalesce(?::timestamptz, now()) as now) t

-- name: InstanceAttemptCap
-- Deletes all attempts except the newest.
delete from perdure.attempts a
where a.kind = 'instance' and a.id = any(?::text[])
  and a.seq <= (select max(b.seq) - 50 from perdure.attempts b where b.kind = 'instance' and b.id = a.id)

-- name: InstanceRunning
-- Returns the worker that runs an instance, and the time of its claim.
select worker, claimed_at
from perdure.leases
where ?::uuid = any(ids)
order by seq desc
limit 1
