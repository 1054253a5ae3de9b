-- Fsm signal: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: SignalTarget
-- Only takes the lock, before all other statements: they then see everything that was
-- committed before. Parking an instance takes the same lock. So does finishing an instance
-- that has ever awaited a signal.
select {text id}
from perdure.instances
where id = {uuid ?1}
{lock for no key update}

-- name: SignalBeyond
-- Returns a row if the inbox holds more signals than its limit.
select 1
from perdure.signals
where target_id = {uuid ?}
limit 1 offset ?
