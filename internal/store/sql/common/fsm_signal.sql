-- Fsm signal: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: SignalTarget
-- The lock comes first and alone: the statements that follow see everything that
-- was committed before. Parking an instance and ending one that has ever awaited a
-- signal take the same lock.
select {text id}
from perdure.instances
where id = {uuid ?1}
{lock for no key update}

-- name: SignalBeyond
-- A row if the inbox holds more than it may.
select 1
from perdure.signals
where target_id = {uuid ?}
limit 1 offset ?
