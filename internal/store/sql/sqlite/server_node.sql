-- The processes that run, and what they have finished, on SQLite.

-- name: NodeBeat
-- A drain that was asked for stays asked for.
insert into perdure.nodes (id, host, pid, version, roles, work, running, started_at, seen_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
on conflict (id) do update set seen_at = excluded.seen_at, work = excluded.work, running = excluded.running
returning draining

-- name: NodeList
select id, host, pid, version, roles, work, running, draining, started_at, seen_at, ?
from perdure.nodes
order by started_at, id

-- name: NodeDrain
update perdure.nodes
set draining = 1
where id = ?

-- name: NodePurge
delete from perdure.nodes
where seen_at <= ? - ?

-- name: SampleInstances
select count(*), count(*) filter (where status in ('failed', 'quarantined'))
from perdure.finished
where finished_at > ?1 and finished_at <= ?2

-- name: SampleHooks
select
  (select count(*) from perdure.hook_ends where status in ('done', 'cancelled') and finished_at > ?1 and finished_at <= ?2),
  (select count(*) from perdure.hook_ends where status in ('failed', 'quarantined') and finished_at > ?1 and finished_at <= ?2)

-- name: SampleTasks
-- Of dead letters, which no index has by their end, only the newest are looked at.
select
  (select count(*) from queues_task where status in ('completed', 'cancelled') and finished_at > ?1 and finished_at <= ?2),
  (select count(*)
    from (select finished_at from queues_task where status in ('failed', 'quarantined') order by task_id desc limit 1000) dead
    where finished_at > ?1 and finished_at <= ?2)
