-- Every kind of work has the same words for a status: hooks end as done, and the views
-- perdure_hooks and perdure_alarms tell what waits apart: scheduled is due later, ready is
-- due, and retrying waits for another attempt. The kinds of rows in perdure_alarms are alarm
-- and timer.
-- MySQL commits with every DDL statement: each one can run again.

-- MySQL keeps the check of a column apart from the column, under a name that it has made;
-- MariaDB drops it with the definition.
set @perdure_step = if(exists(
  select 1
  from information_schema.table_constraints
  where constraint_schema = database() and table_name = 'perdure_hook_ends' and constraint_name = 'perdure_hook_ends_chk_1'
), 'alter table perdure_hook_ends drop check perdure_hook_ends_chk_1', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

alter table perdure_hook_ends modify column status varchar(16) not null;

update perdure_hook_ends
set status = 'done'
where status = 'completed';

alter table perdure_hook_ends modify column status varchar(16) not null check (status in ('done', 'failed', 'quarantined', 'cancelled'));

create or replace sql security invoker view perdure_hooks as
select coalesce(h.`key`, h.id) as id, h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'running' when h.attempt > 0 then 'retrying' when h.due_at > utc_timestamp(6) then 'scheduled' else 'ready' end) as status,
  h.priority, h.policy, h.max_attempts, h.attempt + case when e.status = 'done' then 1 else 0 end as attempts, h.crashes, h.batch_limit, coalesce(e.error, h.error) as error,
  h.unit_id, h.trace, h.created_at, case when e.id is null then h.next_attempt_at end as next_attempt_at, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure_leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1), h.last_attempt_at) as last_attempt_at,
  e.finished_at,
  coalesce(e.worker, (select l.worker from perdure_leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1)) as worker,
  (select l.expires_at from perdure_leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1) as lease_expires_at
from perdure_hook_items h
left join perdure_hook_ends e on e.id = h.id
left join perdure_ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id;

create or replace sql security invoker view perdure_alarms as
select a.actor_type, a.actor_id, _utf8mb4'alarm' collate {collation} as kind, a.alarm_id, a.type,
  coalesce(a.dead, case when r.id is null then 'running' when a.attempt > 0 then 'retrying' when a.due_at > utc_timestamp(6) then 'scheduled' else 'ready' end) as status,
  a.priority, a.due_at, a.occurs_at, a.sequence, a.payload, null as path, a.generation, a.every_us, a.cron, a.zone, a.base_at, a.missed, a.missed_cap, a.caught_up,
  a.policy, a.max_attempts, a.attempt as attempts, a.crashes, a.batch_limit, a.error, a.webhook, a.trace, a.created_at, a.last_attempt_at
from perdure_alarm_items a
left join perdure_ready r on r.queue = a.queue and r.suspect = case when a.batch_limit is null then 0 else 1 end and r.priority = a.priority and r.due_at = a.due_at and r.id = a.id
union all
select d.actor_type, d.actor_id, _utf8mb4'timer' collate {collation}, d.alarm_id, d.type, case when d.status <> 'pending' then d.status when d.due_at > utc_timestamp(6) then 'scheduled' else 'ready' end,
  0, d.due_at, d.occurs_at, d.sequence, d.payload, d.path, d.generation, null, null, null, null, null, null, 0,
  null, null, 0, d.crashes, d.batch_limit, d.error, null, null, d.created_at, null
from perdure_timers d;
