-- The number of tasks, for metrics. Counting stops at a limit, so the cost does not
-- grow with the number of tasks.

-- name: TaskDepth
with waits as materialized (
  select scheduled_at > ? as later from queues_task where status = 'pending' limit 10000
)
select 'ready', count(*) from waits where not later
union all
select 'scheduled', count(*) from waits where later
union all
select 'running', count(*) from (select 1 from queues_task where status = 'processing' limit 10000) n
union all
select 'failed', count(*) from (select 1 from queues_task where status in ('failed', 'quarantined') and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from queues_task where status in ('failed', 'quarantined') and status = 'quarantined' limit 10000) n
