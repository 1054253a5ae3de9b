-- Fsm outcome: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: LeaseSee
select {text token}
from perdure.leases
where token {any uuid ?}

-- name: InterruptList
select {text id}, {text token}
from perdure.interrupts
where token {any uuid ?}

-- name: SignalConsume
delete from perdure.signals
where seq {any bigint ?}

-- name: BarrierDelete
delete from perdure.barriers
where parent_id {any uuid ?}

-- name: LeaseDelete
delete from perdure.leases
where token {any uuid ?}
