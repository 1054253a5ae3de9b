-- Fsm invariant: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: InvariantKept
-- What is kept beyond the end is kept with the instance.
select {text p.id}, p.place || ' of no instance'
from (
  select id, 'finished' as place from perdure.finished
  union all
  select id, 'uniques' from perdure.uniques
  union all
  select target_id, 'signals' from perdure.signals
  union all
  select target_id, 'signal_keys' from perdure.signal_keys
  union all
  select {uuid id}, 'attempts' from perdure.attempts where kind = 'instance'
) p
where not exists (select 1 from perdure.instances i where i.id = p.id)

-- name: InvariantInterrupt
-- A claim that was taken away belongs to a lease that goes on, and its instance
-- has ended or begun anew since.
select {text x.id}, 'was interrupted in a lease that is gone'
from perdure.interrupts x
where not exists (select 1 from perdure.leases l where l.token = x.token)
