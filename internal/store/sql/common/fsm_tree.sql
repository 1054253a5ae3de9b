-- Fsm tree: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: TreeLeft
-- Whether rows of a tree are left, also those that others work on.
select 1
from perdure.tree_ends
where root_id = {uuid ?}
limit 1
