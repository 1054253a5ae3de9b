-- Fsm sweep: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: LeaseExtend
update perdure.leases
set expires_at = {now ?} + {us {bigint ?}}
where token = {uuid ?}

-- name: InstancePostpone
-- Returns a claim that this process cannot run to the queue, due later, with the reason.
update perdure.instances
set error = ?, due_at = {now ?} + {us {bigint ?}}
where id = {uuid ?}

-- name: InterruptPurge
delete from perdure.interrupts
where token = {uuid ?}
