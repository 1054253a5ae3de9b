-- The machines that processes know.

-- name: DefinitionList
-- The newest version of each machine first.
select d.fsm, d.version, d.first_step, d.queue, d.steps, d.schema, d.cancel_step
from perdure.definitions d
order by d.fsm, d.version desc
