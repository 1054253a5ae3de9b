-- Fsm invariant: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: InvariantKept
-- Rows that are kept after an instance has finished are kept as long as the instance.
select {text p.id}, p.place || ' of no instance'
from (
  select id, 'finished' as place from perdure.finished
  union all
  select id, 'uniques' from perdure.uniques
  union all
  select instance_id, 'journal' from perdure.journal
  union all
  select target_id, 'signals' from perdure.signals
  union all
  select target_id, 'signal_keys' from perdure.signal_keys
  union all
  select {uuid id}, 'attempts' from perdure.attempts where kind = 'instance'
) p
where not exists (select 1 from perdure.instances i where i.id = p.id)

-- name: InvariantInterrupt
-- A revoked claim belongs to an existing lease. Its instance has finished or restarted
-- since, which is not checked.
select {text x.id}, 'was interrupted in a lease that is gone'
from perdure.interrupts x
where not exists (select 1 from perdure.leases l where l.token = x.token)
