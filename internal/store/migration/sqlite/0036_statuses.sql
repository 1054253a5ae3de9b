-- Every kind of work has the same words for a status: hooks end as done, and the views
-- perdure_hooks and perdure_alarms tell what waits apart: scheduled is due later, ready is
-- due, and retrying waits for another attempt. The kinds of rows in perdure_alarms are alarm
-- and timer.

drop view perdure_hooks;

drop view perdure_alarms;

alter table perdure_hook_ends rename to perdure_hook_ends_before;

create table perdure_hook_ends (
  id text primary key,
  status text not null check (status in ('done', 'failed', 'quarantined', 'cancelled')),
  error text,
  worker text,
  created_at integer not null,
  began_at integer,
  finished_at integer not null
) strict;

insert into perdure_hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select id, case status when 'completed' then 'done' else status end, error, worker, created_at, began_at, finished_at
from perdure_hook_ends_before;

drop table perdure_hook_ends_before;

-- Serves retention, and the charts.
create index perdure_hook_ends_at_idx on perdure_hook_ends (finished_at) where status in ('done', 'cancelled');

-- Serve the retention and the list of dead letters.
create index perdure_hook_ends_dead_at_idx on perdure_hook_ends (finished_at) where status in ('failed', 'quarantined');
create index perdure_hook_ends_dead_idx on perdure_hook_ends (created_at, id) where status in ('failed', 'quarantined');

create view perdure_hooks as
select coalesce(h.key, h.id) as id, h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'running' when h.attempt > 0 then 'retrying' when h.due_at > cast(unixepoch('subsec') * 1000000 as integer) then 'scheduled' else 'ready' end) as status,
  h.priority, h.policy, h.max_attempts, h.attempt + coalesce(e.status = 'done', 0) as attempts, h.crashes, h.batch_limit, coalesce(e.error, h.error) as error,
  h.unit_id, h.trace, h.created_at, case when e.id is null then h.next_attempt_at end as next_attempt_at, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure_leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1), h.last_attempt_at) as last_attempt_at,
  e.finished_at,
  coalesce(e.worker, (select l.worker from perdure_leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1)) as worker,
  (select l.expires_at from perdure_leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1) as lease_expires_at
from perdure_hook_items h
left join perdure_hook_ends e on e.id = h.id
left join perdure_ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id;

create view perdure_alarms as
select a.actor_type, a.actor_id, 'alarm' as kind, a.alarm_id, a.type,
  coalesce(a.dead, (select case when a.attempt > 0 then 'retrying' when a.due_at > cast(unixepoch('subsec') * 1000000 as integer) then 'scheduled' else 'ready' end from perdure_ready r where r.queue = a.queue and r.suspect = (a.batch_limit is not null) and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id limit 1), 'running') as status,
  a.priority, a.due_at, a.occurs_at, a.sequence, a.payload, null as path, a.generation, a.every_us, a.cron, a.zone, a.base_at, a.missed, a.missed_cap, a.caught_up,
  a.policy, a.max_attempts, a.attempt as attempts, a.crashes, a.batch_limit, a.error, a.webhook, a.trace, a.created_at, a.last_attempt_at
from perdure_alarm_items a
union all
select d.actor_type, d.actor_id, 'timer', d.alarm_id, d.type, case when d.status <> 'pending' then d.status when d.due_at > cast(unixepoch('subsec') * 1000000 as integer) then 'scheduled' else 'ready' end,
  0, d.due_at, d.occurs_at, d.sequence, d.payload, d.path, d.generation, null, null, null, null, null, null, 0,
  null, null, 0, d.crashes, d.batch_limit, d.error, null, null, d.created_at, null
from perdure_timers d;
