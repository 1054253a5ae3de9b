-- The processes that run, and what they have finished, on SQLite.

-- name: NodeDrain
update perdure.nodes
set draining = 1
where id = ?

-- name: SampleTasks
-- Of dead letters, which no index has by their end, only the newest are looked at.
select
  (select count(*) from queues_task where status in ('completed', 'cancelled') and finished_at > ?1 and finished_at <= ?2),
  (select count(*)
    from (select finished_at from queues_task where status in ('failed', 'quarantined') order by task_id desc limit 1000) dead
    where finished_at > ?1 and finished_at <= ?2)
