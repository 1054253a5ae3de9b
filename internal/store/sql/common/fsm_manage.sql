-- Fsm manage: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: LeaseTake
select {text token}
from perdure.leases
where token = {uuid ?}
{lock for update}
