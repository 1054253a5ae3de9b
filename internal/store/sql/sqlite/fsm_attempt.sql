-- Attempts of steps, on SQLite.

-- name: InstanceAttempt
-- Records failed steps.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', o.value->>0, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = o.value->>0), 0) + 1,
  o.value->>1, o.value->>2, 'failed', o.value->>3, ?1, ?3 - (o.value->>4), ?3
from jsonb_each(?2) o

-- name: InstanceAttemptCap
-- Deletes all attempts except the newest.
delete from perdure.attempts
where kind = 'instance' and id in (select value->>0 from jsonb_each(?1))
  and seq <= (select max(b.seq) - 50 from perdure.attempts b where b.kind = 'instance' and b.id = perdure.attempts.id)

-- name: InstanceRunning
-- Returns the worker that runs an instance, and the time of its claim.
select worker, claimed_at
from perdure.leases
where ? in (select value from json_each(ids))
order by seq desc
limit 1
