-- Server inspect: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: InspectInstances
select {text t.id}
from perdure.instances t
where t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectInstancesOf
select {text t.id}
from perdure.instances t
where t.fsm = ? and t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectEnded
select {text t.id}
from perdure.finished t
where t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectDone
select {text t.id}
from perdure.finished t
where t.id < {uuid ?} and t.status = 'done'
order by t.id desc
limit ?

-- name: InspectCancelled
select {text t.id}
from perdure.finished t
where t.status = 'cancelled' and t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectStopped
select {text t.id}
from perdure.finished t
where t.status = 'stopped' and t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectWaiting
select {text t.id}
from perdure.waiting t
where t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectBarriers
select {text t.parent_id}
from perdure.barriers t
where t.parent_id < {uuid ?}
order by t.parent_id desc
limit ?

-- name: InspectUnrouted
-- Also in the order of ids: only a few instances have no worker.
select {text t.id}
from perdure.unrouted t
where t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectUnique
select {text u.id}
from perdure.uniques u
where u.key = ? and u.name in (select d.fsm from perdure.definitions d union select '')
order by u.id desc
limit ?

-- name: InspectSignals
select seq, name, {text payload}, created_at, received
from perdure.signals
where target_id = {uuid ?} and seq > ?
order by seq
limit ?
