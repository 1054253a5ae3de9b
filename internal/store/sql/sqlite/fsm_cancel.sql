-- Cancelling instances that have a cancel step, on SQLite.

-- name: InstanceCompensate
-- The instance continues with its cancel step and its current state. It waits for
-- nothing, and no longer has a deadline.
update perdure.instances
set step = o.value->>1, cancel_reason = o.value->>2, attempt = 0, failures = 0, crashes = 0, batch_limit = null, awaits = null, keeps = 0, seen = null,
  timed_out = 0, dropped = null, rerun = 0, wait = null, error = null, deadline_at = null, due_at = ?1
from jsonb_each(?2) o
where perdure.instances.id = o.value->>0

-- name: CancelLease
-- A step of the instance is still running. This lease holds the instance until the
-- process that runs the step has finished it, or has crashed.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select o.value->>0, 'cancel:' || (o.value->>0), o.value->>1, 0, ?3, ?3 + ?1, json_array(o.value->>2)
from jsonb_each(?2) o

-- name: CancelLeaseTake
-- Returns the leases that hold instances for their cancel step.
select l.ids->>0, l.token
from perdure.leases l
where l.ids->>0 in (select value->>0 from jsonb_each(?1)) and l.worker = 'cancel:' || l.token
  and not exists (select 1 from perdure.interrupts x where x.token = l.token and x.id = l.ids->>0)

-- name: PartitionQueued
select p.id
from perdure.partition_waiting p
where (p.key, p.id) in (select value->>0, value->>1 from jsonb_each(?1))
