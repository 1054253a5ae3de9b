-- Server node: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: NodeList
select id, host, pid, version, roles, work, running, draining, started_at, seen_at, {now ?}
from perdure.nodes
order by started_at, id

-- name: NodePurge
delete from perdure.nodes
where seen_at <= {now ?} - {us {bigint ?}}
