-- The values of filters in lists, on PostgreSQL. Each value is found from the
-- previous value, along an index.

-- name: FacetInstanceFSM
with recursive found (value) as (
  (select fsm from perdure.instances order by fsm limit 1)
  union all
  select (select i.fsm from perdure.instances i where i.fsm > found.value order by i.fsm limit 1)
  from found
  where found.value is not null
)
select value from found where value is not null limit 200

-- name: FacetTaskType
select distinct s.task_type
from (select task_type from queues.task order by task_id desc limit 5000) s
order by s.task_type
limit 200

-- name: FacetActorType
with recursive found (value) as (
  (select type from perdure.actors order by type limit 1)
  union all
  select (select a.type from perdure.actors a where a.type > found.value order by a.type limit 1)
  from found
  where found.value is not null
)
select value from found where value is not null limit 200
