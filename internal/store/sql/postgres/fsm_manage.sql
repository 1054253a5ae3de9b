-- Looking at instances and ending them from outside, on PostgreSQL.

-- name: InstanceGet
select i.id::text, i.fsm, i.version, i.step, i.state::text, i.attempt, least(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id::text, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace
from perdure.instances i
where i.id = ?::uuid

-- name: InstanceShow
-- A limit, not exists: the planner would read the whole table for a list.
select i.id::text, i.fsm, i.version, i.step, i.state::text, i.queue, i.priority, i.attempt, least(i.failures, i.attempt), i.crashes, i.parent_id::text, i.partition_key, i.unique_key,
  coalesce(f.error, i.error), i.created_at, i.due_at, i.deadline_at, f.finished_at, f.result::text, coalesce(f.status, case
    when (select true from perdure.ready r where r.queue = i.queue and r.suspect in (false, true) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id limit 1)
      then case when i.due_at > coalesce(?::timestamptz, now()) then 'scheduled' else 'runnable' end
    when (select true from perdure.waiting w where w.id = i.id limit 1) then 'awaiting_signal'
    when (select true from perdure.barriers b where b.parent_id = i.id limit 1) then 'awaiting_children'
    when (select true from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.id = i.id limit 1) then 'unrouted'
    when (select true from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id limit 1) then 'queued'
    else 'executing'
  end)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: LeaseOf
select token::text
from perdure.leases
where ?::uuid = any(ids)
order by seq desc
limit 1

-- name: LeaseTake
select token::text
from perdure.leases
where token = ?::uuid
for update

-- name: LeaseTakeTree
-- The leases that hold an instance or one of its descendants. Outcomes lock them
-- first too, so a cancel that has them meets no outcome half way.
with recursive tree as (
  select ?::uuid as id
  union all
  select i.id
  from perdure.instances i
  join tree on i.parent_id = tree.id
  where not exists (select 1 from perdure.finished f where f.id = i.id)
)
select l.token::text
from perdure.leases l
where exists (select 1 from tree where tree.id = any(l.ids))
order by l.token
for update of l

-- name: ReadyRemove
delete from perdure.ready r
using perdure.instances i
where i.id = ?::uuid and r.queue = i.queue and r.suspect in (false, true) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id

-- name: WaitingRemove
delete from perdure.waiting
where id = ?::uuid

-- name: BarrierRemove
delete from perdure.barriers
where parent_id = ?::uuid

-- name: UnroutedRemove
delete from perdure.unrouted u
using perdure.instances i
where i.id = ?::uuid and u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.id = i.id

-- name: PartitionRemove
delete from perdure.partition_waiting p
using perdure.instances i
where i.id = ?::uuid and p.key = i.partition_key and p.id = i.id

-- name: InterruptInsert
insert into perdure.interrupts (id, token)
values (?::uuid, ?::uuid)
on conflict do nothing

-- name: ChildrenLive
select i.id::text
from perdure.instances i
where i.parent_id = ?::uuid and not exists (select 1 from perdure.finished f where f.id = i.id)
order by i.id

-- name: InstancePurge
-- Children of a parent that has not ended are spared: it may still read them.
with old as (
  select f.id
  from perdure.finished f
  join perdure.instances i on i.id = f.id
  where f.finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond' and f.status in ('done', 'cancelled')
    and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
      or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
  order by f.finished_at
  limit $3
  for update of f skip locked
), keys as (
  delete from perdure.signal_keys k
  using old
  where k.target_id = old.id
), transitions as (
  delete from perdure.transitions t
  using old
  where t.instance_id = old.id
), attempts as (
  delete from perdure.attempts a
  using old
  where a.kind = 'instance' and a.id = old.id::text
), uniques as (
  delete from perdure.uniques u
  using old, perdure.instances i
  where i.id = old.id and u.name = i.unique_name and u.key = i.unique_key and u.id = old.id
), instances as (
  delete from perdure.instances i
  using old
  where i.id = old.id
)
delete from perdure.finished f
using old
where f.id = old.id

-- name: FinishedRevive
-- An operator's retry: the end never was.
delete from perdure.finished
where id = ?::uuid and status in ('failed', 'quarantined', 'cancelled')

-- name: InstanceReset
-- All attempts before it, no deadline, and no parent that counts it again: one
-- that still waits goes on seeing it by the negative number.
update perdure.instances
set attempt = 0, failures = 0, crashes = 0, batch_limit = null, timed_out = false, awaits = null, seen = null, deadline_at = null, parent_fanout = -abs(parent_fanout),
  due_at = coalesce(?::timestamptz, now())
where id = ?::uuid
