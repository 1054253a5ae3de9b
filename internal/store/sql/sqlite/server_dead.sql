-- Dead letters of every kind, newest first, on SQLite.

-- name: TaskErrorLast
select cast(e.task_id as text), e.error_message
from jsonb_each(?1) t
join queues_error e on e.error_id = (select error_id from queues_error where task_id = cast(t.value->>0 as integer) order by error_id desc limit 1)

-- name: DeadTasks
select t.task_id, t.task_type, t.status,
  coalesce((select e.error_message from queues_error e where e.task_id = t.task_id order by e.error_id desc limit 1), ''),
  t.attempts, t.enqueued_at, coalesce(t.finished_at, t.enqueued_at)
from queues_task t
where t.status in ('failed', 'quarantined') and t.task_id < ?
order by t.task_id desc
limit ?
