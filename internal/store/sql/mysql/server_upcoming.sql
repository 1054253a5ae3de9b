-- Instances in lists of the server, due and upcoming work, and marks that change with the
-- work of a kind, on MySQL. Scheduled and ready work is indexed by the queue, name or type
-- that a process serves. The statements therefore read it group by group.

-- name: InspectDead
select t.id
from perdure.finished t
where t.dead = 1 and t.id < ?
order by t.id desc
limit ?

-- name: InspectExecuting
-- Few rows: as many as processes run concurrently.
select distinct held.id
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
where instr(l.queue, char(9 using utf8mb4)) = 0 and held.id < ?
order by 1 desc
limit ?

-- name: InspectQueued
select p.key, p.seq, p.id
from perdure.partition_waiting p
where p.key >= ?1 and (p.key > ?1 or p.seq > ?2)
order by p.key, p.seq
limit ?3

-- name: InspectReadyGroup
-- Returns the next queue and priority that has instances: before, between or after the
-- lanes of alarms and hooks. Each case has its own search: a comparison of rows uses no
-- index.
select queue, suspect, priority
from (
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect = ?2 and priority > ?3 order by priority limit 1) g1
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue = ?1 and suspect > ?2 order by suspect, priority limit 1) g2
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue > ?1 and queue < concat('alarm', char(9 using utf8mb4)) order by queue, suspect, priority limit 1) g3
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue > greatest(?1, concat('alarm', char(10 using utf8mb4))) and queue < concat('hook', char(9 using utf8mb4)) order by queue, suspect, priority limit 1) g4
  union all
  select * from (select queue, suspect, priority from perdure.ready where queue > greatest(?1, concat('hook', char(10 using utf8mb4))) order by queue, suspect, priority limit 1) g5
) s
order by queue, suspect, priority
limit 1

-- name: InspectReady
select t.due_at, t.id
from perdure.ready t
where queue = ?1 and suspect = ?2 and priority = ?3 and t.due_at >= ?4 and (t.due_at > ?4 or t.id > ?5) and t.due_at <= ?6
order by t.due_at, t.id
limit ?7

-- name: InspectStatus
-- Returns the columns that filters use, without the state. The program adds the ids.
select i.id, i.fsm, i.queue, i.step, i.parent_id, coalesce(f.status, case
    when (exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = 0 and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id) or exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = 1 and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id))
      then case when least(i.failures, i.attempt) > 0 then 'retrying' when i.due_at > coalesce(cast(? as datetime(6)), utc_timestamp(6)) then 'scheduled' else 'ready' end
    when exists (select 1 from perdure.waiting w where w.id = i.id) then 'waiting_signal'
    when exists (select 1 from perdure.barriers b where b.parent_id = i.id) then 'waiting_children'
    when exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id) then case when {parked i.fsm} then 'ready' else 'no_worker' end
    when exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id) then 'waiting_turn'
    else 'running'
  end)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: InspectWait
-- Returns what an instance waits for: signals by name, or children.
select w.names, w.deadline_at, 0, 0
from perdure.waiting w
where w.id = ?1
union all
select null, b.deadline_at, case when b.pending <= 500000000 then b.pending else (
  select count(*)
  from perdure.instances c
  where c.parent_id = b.parent_id and c.parent_fanout = b.fanout
    and not exists (select 1 from perdure.finished f where f.id = c.id and not f.ended_by <=> b.parent_id)
) end, (
  select count(*)
  from perdure.instances c
  where c.parent_id = b.parent_id and c.parent_fanout in (b.fanout, 0 - b.fanout)
)
from perdure.barriers b
where b.parent_id = ?1

-- name: UpcomingSignalTimeouts
select w.deadline_at, i.id, i.fsm, 'wait for ' || (select group_concat(n.name separator ', ') from json_table(w.names, '$[*]' columns (name varchar(128) path '$')) n) || ' ends'
from perdure.waiting w
join perdure.instances i on i.id = w.id
where w.deadline_at > ? and w.deadline_at <= ?
order by w.deadline_at
limit ?

-- name: UpcomingSchedules
select next_at, name, fsm, 'schedule'
from perdure.schedules
where paused = 0 and next_at > ? and next_at <= ?
order by next_at
limit ?

-- name: CountPlaces
-- Counts each kind, up to a cap.
select 'instances.waiting', count(*) from (select 1 from perdure.waiting limit ?1) s
union all
select 'instances.joining', count(*) from (select 1 from perdure.barriers limit ?1) s
union all
select 'instances.queued', count(*) from (select 1 from perdure.partition_waiting limit ?1) s
union all
select 'instances.unrouted', count(*) from (select 1 from perdure.unrouted u where not {parked u.fsm} limit ?1) s
union all
select 'instances.paused', count(*) from (select 1 from perdure.unrouted u where {parked u.fsm} limit ?1) s
union all
select 'instances.failed', count(*) from (select 1 from perdure.finished where dead = 1 limit ?1) s
union all
select 'hooks.running', count(*) from (
  select 1
  from (
    select distinct held.id
    from perdure.leases l
    straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
    where l.queue > concat('hook', char(9 using utf8mb4)) and l.queue < concat('hook', char(10 using utf8mb4))
  ) held
  straight_join perdure.hook_items h on h.id = held.id
  where not exists (select 1 from perdure.hook_ends e where e.id = h.id)
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit ?1
) s
union all
select 'hooks.failed', count(*) from (select 1 from perdure.hook_ends where dead = 1 limit ?1) s
union all
select 'alarms.running', count(*) from (
  select 1
  from (
    select distinct held.id
    from perdure.leases l
    straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
    where l.queue = concat('alarm', char(9 using utf8mb4))
  ) held
  straight_join perdure.alarm_items h on h.id = held.id
  where h.dead is null
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit ?1
) s
union all
select 'alarms.failed', count(*) from (select 1 from (select 1 from perdure.alarm_items where is_dead = 1 limit ?1) a union all select 1 from (select 1 from perdure.timers where status = 'quarantined' limit ?1) d limit ?1) s
union all
select 'actors.total', count(*) from (select 1 from perdure.actors limit ?1) s
union all
select 'actors.failed', count(*) from (select 1 from perdure.actors where is_dead = 1 limit ?1) s
union all
select 'schedules.total', count(*) from (select 1 from perdure.schedules limit ?1) s

-- name: InspectMarks
select 'instances', concat_ws('|',
  (select greatest(coalesce((select max(finished_at) from perdure.finished where dead = 0), '1970-01-01'), coalesce((select max(finished_at) from perdure.finished where dead = 1), '1970-01-01'))),
  (select id from perdure.instances order by id desc limit 1),
  (select max(seq) from perdure.leases where instr(queue, char(9 using utf8mb4)) = 0),
  (select count(*) from (select 1 from perdure.waiting limit 1000) s),
  (select count(*) from (select 1 from perdure.barriers limit 1000) s),
  (select count(*) from (
    (select 1 from perdure.ready where queue < concat('alarm', char(9 using utf8mb4)) limit 1000)
    union all
    (select 1 from perdure.ready where queue > concat('alarm', char(10 using utf8mb4)) and queue < concat('hook', char(9 using utf8mb4)) limit 1000)
    union all
    (select 1 from perdure.ready where queue > concat('hook', char(10 using utf8mb4)) limit 1000)
    limit 1000
  ) s))
union all
select 'hooks', concat_ws('|',
  (select finished_at from perdure.hook_ends where dead = 0 order by finished_at desc limit 1),
  (select finished_at from perdure.hook_ends where dead = 1 order by finished_at desc limit 1),
  (select created_at from perdure.hook_items order by created_at desc, id desc limit 1),
  (select max(seq) from perdure.leases where queue > concat('hook', char(9 using utf8mb4)) and queue < concat('hook', char(10 using utf8mb4))),
  (select count(*) from (select 1 from perdure.ready where queue > concat('hook', char(9 using utf8mb4)) and queue < concat('hook', char(10 using utf8mb4)) limit 1000) s),
  (select count(*) from (select 1 from perdure.hook_ends where dead = 1 limit 1000) s))
union all
select 'alarms', concat_ws('|',
  (select due_at from perdure.alarm_items order by due_at, actor_type, actor_id, alarm_id limit 1),
  (select due_at from perdure.timers where status = 'pending' order by due_at, actor_type, actor_id, alarm_id limit 1),
  (select max(seq) from perdure.leases where queue = concat('alarm', char(9 using utf8mb4))),
  (select count(*) from (select 1 from perdure.ready where queue > concat('alarm', char(9 using utf8mb4)) and queue < concat('alarm', char(10 using utf8mb4)) limit 1000) s),
  (select count(*) from (select 1 from perdure.timers where status = 'pending' limit 1000) s),
  (select count(*) from (select 1 from perdure.alarm_items where is_dead = 1 limit 1000) s),
  (select count(*) from (select 1 from perdure.timers where status = 'quarantined' limit 1000) s))
union all
select 'actors', concat_ws('|',
  (select created_at from perdure.actors order by created_at desc, type desc, id desc limit 1),
  (select count(*) from (select 1 from perdure.actors where is_dead = 1 limit 1000) s))
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

-- Tasks need functions in the database, and MySQL has none: statements that span all kinds
-- find no tasks.

-- name: DeadTasks
select null from (select 1) none where false

-- name: FacetTaskType
select null from (select 1) none where false

-- name: SampleTasks
select null from (select 1) none where false

-- name: AuditStateTask
select null from (select 1) none where false

-- name: InspectTasks
select null from (select 1) none where false

-- name: InspectDeadTasks
select null from (select 1) none where false

-- name: InspectRunningTasks
select null from (select 1) none where false

-- name: InspectWaitingTasks
select null from (select 1) none where false

-- name: UpcomingTaskGroup
select null from (select 1) none where false

-- name: UpcomingTasks
select null from (select 1) none where false

-- name: CountDueTasks
select 0, null
