-- Cancelling instances that have a cancel step, on PostgreSQL.

-- name: InstanceCompensate
-- The instance continues with its cancel step and its current state. It waits for
-- nothing, and no longer has a deadline.
update perdure.instances i
set step = o.step, cancel_reason = o.reason, attempt = 0, failures = 0, crashes = 0, batch_limit = null, awaits = null, keeps = false, seen = null,
  timed_out = false, dropped = null, rerun = false, wait = null, error = null, deadline_at = null, due_at = coalesce(?::timestamptz, now())
from unnest(?::uuid[], ?::text[], ?::text[]) as o (id, step, reason)
where i.id = o.id

-- name: CancelLease
-- A step of the instance is still running. This lease holds the instance until the
-- process that runs the step has finished it, or has crashed.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select o.token, 'cancel:' || o.token, o.queue, false, t.now, t.now + ?::bigint * interval '1 microsecond', array[o.id]
from unnest(?::uuid[], ?::text[], ?::uuid[]) as o (token, queue, id),
  (select coalesce(?::timestamptz, now()) as now) t

-- name: CancelLeaseTake
-- Returns the leases that hold instances for their cancel step.
select l.ids[1]::text, l.token::text
from perdure.leases l
where l.ids && ?::uuid[] and l.worker = 'cancel:' || l.token
  and not exists (select 1 from perdure.interrupts x where x.token = l.token and x.id = l.ids[1])
order by l.token
for update

-- name: PartitionQueued
select p.id::text
from perdure.partition_waiting p
where p.key = any(?::text[]) and p.id = any(?::uuid[])
