-- Server facet: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: SearchInstance
select {text i.id}, i.fsm, i.step
from perdure.instances i
where i.id >= {uuid ?1} and i.id <= {uuid ?2}
order by i.id
limit 5

-- name: SearchActor
select a.type || '/' || a.id, a.type, a.status
from perdure.actors a
where a.type = ?1 and a.id >= ?2 and a.id < ?3
order by a.id
limit 5
