-- The machines that processes know.

-- name: DefinitionList
-- The newest version of each machine first.
select fsm, version, first_step, queue, steps, schema, cancel_step
from perdure.definitions
order by fsm, version desc
