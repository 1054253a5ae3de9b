-- Tasks that fail now, on PostgreSQL.

-- name: FailingTasks
select t.task_id::text, t.task_type, left(e.error_message, 500), e.created_at
from (
  select task_id, error_message, created_at
  from queues.error
  where created_at > ?
  order by error_id desc
  limit ?
) e
join queues.task t on t.task_id = e.task_id
where t.status in ('pending', 'processing') and t.attempts > 0
