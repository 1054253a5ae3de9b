-- Dead letters of every kind, newest first, on PostgreSQL.

-- name: DeadInstances
select i.id::text, i.fsm, f.status, coalesce(f.error, i.error, ''), i.attempt, i.created_at, f.finished_at
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.status in ('failed', 'quarantined') and f.id < ?::uuid
order by f.id desc
limit ?

-- name: DeadHooks
select id, namespace || '/' || name, status, coalesce(error, ''), attempts, created_at, coalesce(finished_at, created_at)
from perdure.hooks
where status in ('failed', 'quarantined') and (created_at, id) < (?, ?)
order by created_at desc, id desc
limit ?

-- name: DeadTasks
select t.task_id::text, t.task_type, t.status,
  coalesce((select e.error_message from queues.error e where e.task_id = t.task_id order by e.error_id desc limit 1), ''),
  t.attempts, t.enqueued_at, coalesce(t.finished_at, t.enqueued_at)
from queues.task t
where t.status in ('failed', 'quarantined') and t.task_id < ?
order by t.task_id desc
limit ?

-- name: DeadAlarms
select case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end, type, status, coalesce(error, ''),
  attempts, created_at, due_at
from perdure.alarms
where status in ('failed', 'quarantined') and created_at <= ? and (created_at < ? or case when actor_type = '' then alarm_id else actor_type || '/' || actor_id || '/' || alarm_id end < ?)
order by created_at desc, 1 desc
limit ?

-- name: DeadActors
select type || '/' || id, type, status, coalesce(reason, ''), 0, created_at, updated_at
from perdure.actors
where status in ('error', 'quarantined') and created_at <= ? and (created_at < ? or type || '/' || id < ?)
order by created_at desc, 1 desc
limit ?
