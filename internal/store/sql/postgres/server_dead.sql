-- Dead letters of every kind, newest first, on PostgreSQL.

-- name: TaskErrorLast
select t.id::text, e.error_message
from unnest(?::bigint[]) as t (id)
cross join lateral (select error_message from queues.error where task_id = t.id order by error_id desc limit 1) e

-- name: DeadTasks
select t.task_id::text, t.task_type, t.status,
  coalesce((select e.error_message from queues.error e where e.task_id = t.task_id order by e.error_id desc limit 1), ''),
  t.attempts, t.enqueued_at, coalesce(t.finished_at, t.enqueued_at)
from queues.task t
where t.status in ('failed', 'quarantined') and t.task_id < ?
order by t.task_id desc
limit ?
