-- Family doctor: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: {Kind}DoctorKept
-- The recorded attempts of an item are kept as long as the item.
select a.id, min(a.error)
from perdure.attempts a
where a.kind = '{word}' and not exists (select 1 from perdure.{items} h where {text h.id} = a.id)
group by a.id

-- name: {Kind}DoctorPolicy
-- The retry policy of an item is an object of JSON.
select {piece Public}, 'has the retry policy ' || substr({text h.policy}, 1, 40)
from perdure.{items} h
where {text h.policy} not like '_"%' and {text h.policy} not like '_}'
limit 1000
