-- Tasks that fail now, on SQLite.

-- name: FailingTasks
select cast(t.task_id as text), t.task_type, substr(e.error_message, 1, 500), e.created_at
from (
  select task_id, error_message, created_at
  from queues_error
  where created_at > ?1
  order by error_id desc
  limit ?2
) e
join queues_task t on t.task_id = e.task_id
where t.status in ('pending', 'processing') and t.attempts > 0
