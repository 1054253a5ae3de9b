-- The machines that processes know, on MySQL.

-- name: DefinitionRecord
insert into perdure.definitions (fsm, version, first_step, queue, steps, `schema`, cancel_step, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(cast(?8 as datetime(6)), utc_timestamp(6)))
on duplicate key update first_step = values(first_step), queue = values(queue), steps = values(steps), `schema` = values(`schema`), cancel_step = values(cancel_step),
  updated_at = values(updated_at)

-- name: DefinitionList
-- The newest version of each machine first.
select fsm, version, first_step, queue, steps, `schema`, cancel_step
from perdure.definitions
order by fsm, version desc
