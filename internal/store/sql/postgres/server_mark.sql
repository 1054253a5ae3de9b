-- Marks that change with the work of a kind, on PostgreSQL. Each mark is read from the end
-- of an index, or from a small table. Ready rows are ordered along the index: without an
-- order, the planner may read rows of other lanes.

-- name: InspectMarks
with recursive lane (queue) as (
  (select queue from perdure.ready order by queue limit 1)
  union all
  select (select r.queue from perdure.ready r where r.queue > lane.queue order by r.queue limit 1)
  from lane
  where lane.queue is not null
)
select 'instances', concat_ws('|',
  (select finished_at from perdure.finished order by finished_at desc limit 1),
  (select id from perdure.instances order by id desc limit 1),
  (select max(seq) from perdure.leases where strpos(queue, chr(9)) = 0),
  (select count(*) from (select 1 from perdure.waiting limit 1000) s),
  (select count(*) from (select 1 from perdure.barriers limit 1000) s),
  (select count(*) from (
    select 1
    from lane
    cross join lateral (select 1 from perdure.ready r where r.queue = lane.queue order by r.suspect, r.priority, r.due_at, r.id limit 1000) due
    where strpos(lane.queue, chr(9)) = 0
    limit 1000
  ) s))
union all
select 'hooks', concat_ws('|',
  (select finished_at from perdure.hook_ends where status in ('done', 'cancelled') order by finished_at desc limit 1),
  (select finished_at from perdure.hook_ends where status in ('failed', 'quarantined') order by finished_at desc limit 1),
  (select created_at from perdure.hook_items order by created_at desc, id desc limit 1),
  (select max(seq) from perdure.leases where starts_with(queue, 'hook' || chr(9))),
  (select count(*) from (
    select 1
    from lane
    cross join lateral (select 1 from perdure.ready r where r.queue = lane.queue order by r.suspect, r.priority, r.due_at, r.id limit 1000) due
    where starts_with(lane.queue, 'hook' || chr(9))
    limit 1000
  ) s),
  (select count(*) from (select 1 from perdure.hook_ends where status in ('failed', 'quarantined') limit 1000) s))
union all
select 'tasks', concat_ws('|',
  (select finished_at from queues.task where status in ('completed', 'cancelled') order by finished_at desc limit 1),
  (select max(task_id) from queues.task),
  (select count(*) from (select 1 from queues.task where status = 'processing' limit 1000) s),
  (select count(*) from (select 1 from queues.task where status in ('failed', 'quarantined') limit 1000) s))
union all
select 'alarms', concat_ws('|',
  (select due_at from perdure.alarm_items order by due_at, actor_type, actor_id, alarm_id limit 1),
  (select due_at from perdure.timers where status = 'pending' order by due_at, actor_type, actor_id, alarm_id limit 1),
  (select max(seq) from perdure.leases where queue = 'alarm' || chr(9)),
  (select count(*) from (
    select 1
    from lane
    cross join lateral (select 1 from perdure.ready r where r.queue = lane.queue order by r.suspect, r.priority, r.due_at, r.id limit 1000) due
    where starts_with(lane.queue, 'alarm' || chr(9))
    limit 1000
  ) s),
  (select count(*) from (select 1 from perdure.timers where status = 'pending' limit 1000) s),
  (select count(*) from (select 1 from perdure.alarm_items where dead is not null limit 1000) s),
  (select count(*) from (select 1 from perdure.timers where status = 'quarantined' limit 1000) s))
union all
select 'actors', concat_ws('|',
  (select created_at from perdure.actors order by created_at desc, type desc, id desc limit 1),
  (select count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') limit 1000) s))
union all
select 'outbox', concat_ws('|', (select counter from perdure.outbox_clock))
union all
select 'schedules', concat_ws('|', (select max(updated_at) from perdure.schedules), (select max(last_at) from perdure.schedules), (select count(*) from perdure.schedules))
union all
select 'definitions', concat_ws('|', (select max(updated_at) from perdure.definitions), (select count(*) from perdure.definitions))
union all
select 'machines', concat_ws('|', (select max(created_at) from perdure.machines), (select count(*) from perdure.machines))
union all
select 'nodes', concat_ws('|', (select count(*) from perdure.nodes), (select count(*) from perdure.nodes where draining))
