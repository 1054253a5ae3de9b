-- What the server looks at: each statement walks along an index,
-- from a position that the last page ended at, and never further than its limit.

-- name: InspectPendingAlarms
select due_at, actor_type, actor_id, kind = 'machine', alarm_id, type, status, coalesce(occurs_at, due_at), created_at
from perdure.alarms
where status = 'pending' and (due_at, actor_type, actor_id, kind, alarm_id) > (?, ?, ?, ?, ?)
order by due_at, actor_type, actor_id, kind, alarm_id
limit ?

-- name: InspectDeadAlarms
select due_at, actor_type, actor_id, kind = 'machine', alarm_id, type, status, coalesce(occurs_at, due_at), created_at
from (
  select due_at, actor_type, actor_id, 'custom' as kind, alarm_id, type, dead as status, occurs_at, created_at
  from perdure.alarm_items
  where dead is not null
  union all
  select due_at, actor_type, actor_id, 'machine', alarm_id, type, status, occurs_at, created_at
  from perdure.timers
  where status = 'quarantined'
) s
where (due_at, actor_type, actor_id, kind, alarm_id) > (?, ?, ?, ?, ?)
order by due_at, actor_type, actor_id, kind, alarm_id
limit ?

-- name: InspectTimersOf
select due_at, actor_type, actor_id, true, alarm_id, type, status, coalesce(occurs_at, due_at), created_at
from perdure.timers
where actor_type = ? and actor_id = ? and (due_at, alarm_id) > (?, ?)
order by due_at, alarm_id
limit ?
