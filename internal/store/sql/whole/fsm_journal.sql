-- The journal of durable functions: statements of most databases. Marks such as {now ?} are
-- explained in template.go.

-- name: InstanceForgive
-- Progress resets the crashes.
update perdure.instances
set crashes = 0, batch_limit = null
where id {any uuid ?}
