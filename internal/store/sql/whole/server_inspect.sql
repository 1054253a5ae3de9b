-- The server's lists. Each statement scans an index from the end of the previous page, and
-- reads no more than its limit.

-- name: InspectWaitingAlarms
-- Alarms and timers, each along its index. The subquery with a limit is one lookup for each
-- row: as a join, it may become a scan of all ready rows.
select due_at, actor_type, actor_id, kind = 'timer', alarm_id, type, 'ready', occurs_at, created_at
from (
  select *
  from (
    select a.due_at, a.actor_type, a.actor_id, 'alarm' as kind, a.alarm_id, a.type, a.occurs_at, a.created_at
    from perdure.alarm_items a
    where a.due_at >= ? and (a.due_at, a.actor_type, a.actor_id, 'alarm', a.alarm_id) > (?, ?, ?, ?, ?) and (select true from perdure.ready r where r.queue = a.queue and r.suspect = (a.batch_limit is not null) and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id limit 1) is not null
    order by a.due_at, a.actor_type, a.actor_id, a.alarm_id
    limit ?
  ) alarms
  union all
  select *
  from (
    select due_at, actor_type, actor_id, 'timer' as kind, alarm_id, type, coalesce(occurs_at, due_at) as occurs_at, created_at
    from perdure.timers
    where status = 'pending' and due_at >= ? and (due_at, actor_type, actor_id, 'timer', alarm_id) > (?, ?, ?, ?, ?)
    order by due_at, actor_type, actor_id, alarm_id
    limit ?
  ) timers
) s
order by due_at, actor_type, actor_id, kind, alarm_id
limit ?

-- name: InspectDeadAlarms
select due_at, actor_type, actor_id, kind = 'timer', alarm_id, type, status, coalesce(occurs_at, due_at), created_at
from (
  select due_at, actor_type, actor_id, 'alarm' as kind, alarm_id, type, dead as status, occurs_at, created_at
  from perdure.alarm_items
  where dead is not null
  union all
  select due_at, actor_type, actor_id, 'timer', alarm_id, type, status, occurs_at, created_at
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

-- name: InspectDead
select {text t.id}
from perdure.finished t
where t.status in ('failed', 'quarantined') and t.id < {uuid ?}
order by t.id desc
limit ?

-- name: InspectQueued
select key, seq, {text id}
from perdure.partition_waiting
where (key, seq) > (?, ?)
order by key, seq
limit ?

-- name: InspectReady
select t.due_at, {text t.id}
from perdure.ready t
where queue = ? and suspect = {boolean ?} and priority = ? and (t.due_at, t.id) > (?, {uuid ?}) and t.due_at <= ?
order by t.due_at, t.id
limit ?
