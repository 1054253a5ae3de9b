-- The definitions that processes know.

-- name: DefinitionList
-- The newest version of each definition comes first.
select d.fsm, d.version, d.first_step, d.queue, d.steps, d.schema, d.cancel_step
from perdure.definitions d
order by d.fsm, d.version desc

-- name: DefinitionRecord
insert into perdure.definitions (fsm, version, first_step, queue, steps, schema, cancel_step, updated_at)
values (?, ?, ?, ?, ?, ?, ?, {now ?})
on conflict (fsm, version) do update
set first_step = excluded.first_step, queue = excluded.queue, steps = excluded.steps, schema = excluded.schema, cancel_step = excluded.cancel_step, updated_at = excluded.updated_at
