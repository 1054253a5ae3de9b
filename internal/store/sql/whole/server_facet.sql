-- The values of filters in lists. Each value is found from the previous value,
-- along an index.

-- name: FacetQueues
select distinct queue
from perdure.definitions
order by queue
limit 200

-- name: FacetHookNamespace
select distinct s.namespace
from (select namespace from perdure.hook_items order by created_at desc, id desc limit 5000) s
order by s.namespace
limit 200

-- name: FacetHookName
select distinct s.name
from (select name from perdure.hook_items order by created_at desc, id desc limit 5000) s
order by s.name
limit 200

-- name: FacetAlarmType
select distinct s.type
from (select * from (select type from perdure.alarm_items limit 5000) a union all select * from (select type from perdure.timers limit 5000) d) s
order by s.type
limit 200
