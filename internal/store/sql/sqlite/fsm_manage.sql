-- Looking at instances and ending them from outside, on SQLite.

-- name: InstanceGet
select i.id, i.fsm, i.version, i.step, i.state, i.attempt, min(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace
from perdure.instances i
where i.id = ?

-- name: InstanceShow
select i.id, i.fsm, i.version, i.step, i.state, i.queue, i.priority, i.attempt, min(i.failures, i.attempt), i.crashes, i.parent_id, i.partition_key, i.unique_key,
  coalesce(f.error, i.error), i.created_at, i.due_at, i.deadline_at, f.finished_at, f.result, coalesce(f.status, case
    when exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect in (0, 1) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
      then case when i.due_at > ? then 'scheduled' else 'runnable' end
    when exists (select 1 from perdure.waiting w where w.id = i.id) then 'awaiting_signal'
    when exists (select 1 from perdure.barriers b where b.parent_id = i.id) then 'awaiting_children'
    when exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.id = i.id) then 'unrouted'
    when exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id) then 'queued'
    else 'executing'
  end)
from perdure.instances i
left join perdure.finished f on f.id = i.id

-- name: LeaseOf
select token
from perdure.leases
where ?1 in (select value from json_each(ids))
order by seq desc
limit 1

-- name: LeaseTake
select token
from perdure.leases
where token = ?

-- name: LeaseTakeTree
-- One transaction writes at a time: there is nothing to lock.
select token
from perdure.leases
where token = ? and false

-- name: ReadyRemove
delete from perdure.ready
where suspect in (0, 1) and (queue, priority, due_at, id) in (select i.queue, i.priority, i.due_at, i.id from perdure.instances i where i.id = ?)

-- name: WaitingRemove
delete from perdure.waiting
where id = ?

-- name: BarrierRemove
delete from perdure.barriers
where parent_id = ?

-- name: UnroutedRemove
delete from perdure.unrouted
where (queue, fsm, version, id) in (select i.queue, i.fsm, i.version, i.id from perdure.instances i where i.id = ?)

-- name: PartitionRemove
delete from perdure.partition_waiting
where (key, id) in (select i.partition_key, i.id from perdure.instances i where i.id = ?)

-- name: InterruptInsert
insert into perdure.interrupts (id, token)
values (?, ?)
on conflict do nothing

-- name: ChildrenLive
select i.id
from perdure.instances i
where i.parent_id = ? and not exists (select 1 from perdure.finished f where f.id = i.id)
order by i.id

-- name: InstancePurge
-- Children of a parent that has not ended are spared: it may still read them.
-- The last statement removes what the ones before it were about.
delete from perdure.transitions
where instance_id in (
  select f.id
  from perdure.finished f
  join perdure.instances i on i.id = f.id
  where f.finished_at <= ?1 - ?2 and f.status in ('done', 'cancelled')
    and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
      or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
  order by f.finished_at, f.id
  limit ?3
)
;
delete from perdure.signal_keys
where target_id in (
  select f.id
  from perdure.finished f
  join perdure.instances i on i.id = f.id
  where f.finished_at <= ?1 - ?2 and f.status in ('done', 'cancelled')
    and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
      or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
  order by f.finished_at, f.id
  limit ?3
)
;
delete from perdure.attempts
where kind = 'instance' and id in (
  select f.id
  from perdure.finished f
  join perdure.instances i on i.id = f.id
  where f.finished_at <= ?1 - ?2 and f.status in ('done', 'cancelled')
    and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
      or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
  order by f.finished_at, f.id
  limit ?3
)
;
delete from perdure.uniques
where (name, key, id) in (
  select i.unique_name, i.unique_key, i.id
  from perdure.instances i
  where i.id in (
    select f.id
  from perdure.finished f
  join perdure.instances i on i.id = f.id
  where f.finished_at <= ?1 - ?2 and f.status in ('done', 'cancelled')
    and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
      or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
  order by f.finished_at, f.id
  limit ?3
  )
)
;
delete from perdure.instances
where id in (
  select f.id
  from perdure.finished f
  join perdure.instances i on i.id = f.id
  where f.finished_at <= ?1 - ?2 and f.status in ('done', 'cancelled')
    and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
      or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
  order by f.finished_at, f.id
  limit ?3
)
;
delete from perdure.finished
where finished_at <= ?1 - ?2 and status in ('done', 'cancelled')
  and not exists (select 1 from perdure.instances i where i.id = perdure.finished.id)

-- name: FinishedRevive
-- An operator's retry: the end never was.
delete from perdure.finished
where id = ?1 and status in ('failed', 'quarantined', 'cancelled')

-- name: InstanceReset
-- All attempts before it, no deadline, and no parent that counts it again: one
-- that still waits goes on seeing it by the negative number.
update perdure.instances
set attempt = 0, failures = 0, crashes = 0, batch_limit = null, timed_out = 0, awaits = null, seen = null, deadline_at = null, parent_fanout = -abs(parent_fanout), due_at = ?1
where id = ?2
