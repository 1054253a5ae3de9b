-- The machines that processes know, on SQLite.

-- name: DefinitionRecord
insert into perdure.definitions (fsm, version, first_step, queue, steps, schema, cancel_step, updated_at)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (fsm, version) do update
set first_step = excluded.first_step, queue = excluded.queue, steps = excluded.steps, schema = excluded.schema, cancel_step = excluded.cancel_step, updated_at = excluded.updated_at
