-- Work that becomes due outside the ready rows, on SQLite.

-- name: InstanceHeld
-- Returns the instances of a process's leases that are in no other place: the leases
-- hold them. An instance that is not the head of its partition is in the partition's
-- queue.
select l.token, l.alone, i.id, i.crashes, coalesce(i.batch_limit, 1), i.id, i.fsm
from perdure.leases l, json_each(l.ids) held
join perdure.instances i on i.id = held.value
where l.worker = ?1
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect in (0, 1) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
  and not exists (select 1 from perdure.waiting w where w.id = i.id)
  and not exists (select 1 from perdure.barriers b where b.parent_id = i.id)
  and not exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id)
  and not exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id)
  and not exists (select 1 from perdure.leases newer, json_each(newer.ids) n where newer.seq > l.seq and n.value = i.id)

-- name: InstanceReturn
-- Returns the claims of a crashed process to the queue. Suspects have a batch limit.
update perdure.instances
set crashes = o.value->>1, batch_limit = o.value->>3, error = ?1, due_at = ?2 + (o.value->>2)
from jsonb_each(?3) o
where perdure.instances.id = o.value->>0
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select i.queue, i.batch_limit is not null, i.priority, i.due_at, i.id
from jsonb_each(?3) o
join perdure.instances i on i.id = o.value->>0
returning queue

-- name: WaitingExpired
select id
from perdure.waiting
where deadline_at <= ?1
order by deadline_at
limit ?2

-- name: WaitingTimeout
update perdure.instances
set due_at = ?3, timed_out = 1
where id in (select w.id from perdure.waiting w where w.id in (select value->>0 from jsonb_each(?1)) and w.deadline_at <= ?2)
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from perdure.waiting w
join perdure.instances i on i.id = w.id
where w.id in (select value->>0 from jsonb_each(?1)) and w.deadline_at <= ?2
returning queue
;
delete from perdure.waiting
where id in (select value->>0 from jsonb_each(?1)) and deadline_at <= ?2

-- name: BarrierTimeout
update perdure.instances
set due_at = ?1, timed_out = 1
where id in (select parent_id from perdure.barriers where deadline_at <= ?1 order by deadline_at limit ?2)
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from perdure.barriers b
join perdure.instances i on i.id = b.parent_id
where b.parent_id in (select parent_id from perdure.barriers where deadline_at <= ?1 order by deadline_at limit ?2)
returning queue
;
insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select parent_id, fanout, fanout, 'cancel', parent_id, 'the wait for the children has timed out', ?1, ?1
from perdure.barriers
where parent_id in (select parent_id from perdure.barriers where deadline_at <= ?1 order by deadline_at limit ?2) and cancel_rest and pending > 0
on conflict (parent_id, kind, last_fanout) do nothing
;
delete from perdure.barriers
where parent_id in (select parent_id from perdure.barriers where deadline_at <= ?1 order by deadline_at limit ?2)

-- name: InstanceUnroute
-- The process that claimed the instance does not know the definition, or not this
-- step of it. The instance is parked until a process serves it.
insert into perdure.unrouted (queue, fsm, version, step, id)
select i.queue, i.fsm, i.version, case when o.value->>1 then i.step else '' end, i.id
from jsonb_each(?1) o
join perdure.instances i on i.id = o.value->>0

-- name: InstanceReroute
update perdure.instances
set due_at = ?4
where id in (
  select u.id
  from jsonb_each(?1) mine
  join perdure.unrouted u on u.queue = ?2 and u.fsm = mine.value->>0 and u.version = mine.value->>1 and u.step = mine.value->>2
  where not {paused fsm mine.value->>0 ?4}
  order by u.id
  limit ?3
)
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select i.queue, i.batch_limit is not null, i.priority, i.due_at, i.id
from (
  select u.id
  from jsonb_each(?1) mine
  join perdure.unrouted u on u.queue = ?2 and u.fsm = mine.value->>0 and u.version = mine.value->>1 and u.step = mine.value->>2
  where not {paused fsm mine.value->>0 ?4}
  order by u.id
  limit ?3
) known
join perdure.instances i on i.id = known.id
returning queue
;
delete from perdure.unrouted
where id in (
  select u.id
  from jsonb_each(?1) mine
  join perdure.unrouted u on u.queue = ?2 and u.fsm = mine.value->>0 and u.version = mine.value->>1 and u.step = mine.value->>2
  where not {paused fsm mine.value->>0 ?4}
  order by u.id
  limit ?3
)

-- name: InstanceNextWake
-- Returns the microseconds until work of a queue is due.
select min(max(min(at), -62135510400000000), 253402214400000000) - ?1
from (
  select min(due_at) as at from perdure.ready w where queue = ?2 and suspect = 0 and priority = -1 and not {paused lane ?2 ?1}{openable Instance w.id}
  union all
  select min(due_at) from perdure.ready w where queue = ?2 and suspect = 0 and priority = 0 and not {paused lane ?2 ?1}{openable Instance w.id}
  union all
  select min(due_at) from perdure.ready w where queue = ?2 and suspect = 0 and priority = 1 and not {paused lane ?2 ?1}{openable Instance w.id}
  union all
  select min(due_at) from perdure.ready w where queue = ?2 and suspect = 1 and ?4 = 1 and not {paused lane ?2 ?1}{openable Instance w.id}
  union all
  select min(r.due_at)
  from perdure.ready r
  join perdure.instances i on i.id = r.id
  where ?4 > 1 and r.queue = ?2 and r.suspect = 1 and i.batch_limit >= ?4 and not {paused lane ?2 ?1}{openable Instance r.id}
  union all
  select ?1
  where exists (
    select 1
    from jsonb_each(?3) mine
    join perdure.unrouted u on u.queue = ?2 and u.fsm = mine.value->>0 and u.version = mine.value->>1 and u.step = mine.value->>2
    where not {paused fsm mine.value->>0 ?1}
  )
  union all
  select min(expires_at) from perdure.leases where queue = ?2
  union all
  select min(until_at) from perdure.pauses where until_at > ?1
  union all
  select min(deadline_at) from perdure.waiting where deadline_at is not null
  union all
  select min(deadline_at) from perdure.barriers where deadline_at is not null
  union all
  select min(at) from perdure.deadlines
  union all
  select min(due_at) from perdure.tree_ends
)

-- name: InstanceSuspectDue
select 1
from perdure.ready
where queue = ?1 and suspect = 1 and due_at <= ?2
limit 1
