-- Family: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: {Kind}RetryBound
-- Returns the id of the last item in the next range, in the order of ids.
select {text id}
from perdure.{items}
where id > {uuid ?}
order by id
limit 1 offset ?
