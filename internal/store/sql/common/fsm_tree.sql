-- Fsm tree: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: TreeLeft
-- Returns a row if rows of a tree are left, including rows that other processes have
-- locked.
select 1
from perdure.tree_ends
where root_id = {uuid ?}
limit 1
