-- The running processes and their counts of finished work, on PostgreSQL.

-- name: NodeDrain
update perdure.nodes
set draining = true
where id = ?

-- name: SampleTasks
-- No index orders dead letters by their end, so only the newest are read.
select
  (select count(*) from queues.task where status in ('completed', 'cancelled') and finished_at > $1::timestamptz and finished_at <= $2::timestamptz),
  (select count(*)
    from (select finished_at from queues.task where status in ('failed', 'quarantined') order by task_id desc limit 1000) dead
    where finished_at > $1::timestamptz and finished_at <= $2::timestamptz)
