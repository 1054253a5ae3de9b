-- Outcomes of steps, many in one statement, on SQLite. The leases are verified
-- first. The other statements receive only claims that are still held. Only one
-- transaction writes at a time, so no locks are needed.

-- name: LeaseShare
select token
from perdure.leases
where token in (select value->>0 from jsonb_each(?1))

-- name: InterruptDelete
delete from perdure.interrupts
where (id, token) in (select value->>0, value->>1 from jsonb_each(?1))

-- name: InstanceLock
select id
from perdure.instances
where id in (select value->>0 from jsonb_each(?1))

-- name: InstanceStep
update perdure.instances
set step = o.value->>1, state = o.value->>2, attempt = o.value->>3, awaits = o.value->>4, keeps = o.value->>5, seen = o.value->>6,
  timed_out = o.value->>7, crashes = case when o.value->>3 = 0 then 0 else crashes end, batch_limit = null, fanout = o.value->>8,
  dropped = o.value->>9, error = o.value->>10, due_at = ?2 + (o.value->>11), failures = o.value->>12,
  awaited = coalesce(o.value->>13, awaited), rerun = o.value->>14, wait = null
from jsonb_each(?1) o
where perdure.instances.id = o.value->>0

-- name: InstanceStepPlain
update perdure.instances
set step = o.value->>1, state = o.value->>2, attempt = 0, failures = 0, awaits = null, keeps = 0, seen = null, timed_out = 0, crashes = 0, batch_limit = null,
  fanout = o.value->>3, dropped = null, error = null, due_at = ?2 + (o.value->>4), rerun = 0, wait = null
from jsonb_each(?1) o
where perdure.instances.id = o.value->>0

-- name: SignalLate
-- Returns signals that an instance once awaited and that no step received.
select s.target_id, s.name
from jsonb_each(?1) o
join perdure.signals s on s.target_id = o.value->>0
where not s.received and s.name in (select n.value from json_each(o.value->>1) n)
  and s.seq not in (select q.value from json_each(o.value->>2) q)

-- name: SignalReceive
update perdure.signals
set received = 1
where seq in (select value->>0 from jsonb_each(?1))

-- name: AwaitPark
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from jsonb_each(?1) o
join perdure.instances i on i.id = o.value->>0
where exists (
  select 1
  from perdure.signals s
  where s.target_id = i.id and s.name in (select n.value from json_each(o.value->>1) n)
    and (o.value->>2 is null or s.seq not in (select q.value from json_each(o.value->>2) q))
)
returning queue
;
insert into perdure.waiting (id, names, deadline_at)
select o.value->>0, o.value->>1, ?2 + (o.value->>3)
from jsonb_each(?1) o
where not exists (
  select 1
  from perdure.signals s
  where s.target_id = o.value->>0 and s.name in (select n.value from json_each(o.value->>1) n)
    and (o.value->>2 is null or s.seq not in (select q.value from json_each(o.value->>2) q))
)

-- name: BarrierInsert
insert into perdure.barriers (parent_id, fanout, pending, until, deadline_at, cancel_rest)
select value->>0, value->>1, value->>2, value->>3, ?1 + (value->>4), value->>5
from jsonb_each(?2)

-- name: BarrierOpen
update perdure.instances
set due_at = ?2
where id in (select parent_id from perdure.barriers where parent_id in (select value->>0 from jsonb_each(?1)) and pending <= until)
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from perdure.barriers b
join perdure.instances i on i.id = b.parent_id
where b.parent_id in (select value->>0 from jsonb_each(?1)) and b.pending <= b.until
returning queue
;
insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select parent_id, fanout, fanout, 'cancel', parent_id, 'enough of the children have ended', ?2, ?2
from perdure.barriers
where parent_id in (select value->>0 from jsonb_each(?1)) and pending <= until and cancel_rest and pending > 0
on conflict (parent_id, kind, last_fanout) do nothing
;
delete from perdure.barriers
where parent_id in (select value->>0 from jsonb_each(?1)) and pending <= until

-- name: BarrierLock
select parent_id
from perdure.barriers
where parent_id in (select value->>0 from jsonb_each(?1))

-- name: BarrierCount
update perdure.barriers
set pending = pending - (o.value->>2)
from jsonb_each(?1) o
where perdure.barriers.parent_id = o.value->>0 and perdure.barriers.fanout = o.value->>1

-- name: FinishMany
insert into perdure.finished (id, status, result, error, state, ended_by, finished_at)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, ?1
from jsonb_each(?2)

-- name: UniqueLeave
delete from perdure.uniques
where (name, key, id) in (select value->>0, value->>1, value->>2 from jsonb_each(?1))

-- name: DeadlineDelete
delete from perdure.deadlines
where (at, id) in (select value->>0, value->>1 from jsonb_each(?1))

-- name: PartitionLock
select key
from perdure.partition_heads
where key in (select value->>0 from jsonb_each(?1))

-- name: PartitionPromote
-- The next instance of each key becomes its head. A key without instances is
-- deleted.
update perdure.instances
set due_at = max(due_at, ?3)
where id in (
  select w.id
  from perdure.partition_waiting w
  where w.key in (select value->>0 from jsonb_each(?1))
    and w.seq = (select min(x.seq) from perdure.partition_waiting x where x.key = w.key)
)
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from perdure.partition_waiting w
join perdure.instances i on i.id = w.id
where w.key in (select value->>0 from jsonb_each(?1))
  and w.seq = (select min(x.seq) from perdure.partition_waiting x where x.key = w.key)
returning queue
;
delete from perdure.partition_heads
where key in (select value->>0 from jsonb_each(?1))
  and not exists (select 1 from perdure.partition_waiting w where w.key = perdure.partition_heads.key)
;
update perdure.partition_heads
set head = (select w.id from perdure.partition_waiting w where w.key = perdure.partition_heads.key order by w.seq limit 1)
where key in (select value->>0 from jsonb_each(?1))
;
delete from perdure.partition_waiting
where key in (select value->>0 from jsonb_each(?1))
  and id = (select h.head from perdure.partition_heads h where h.key = perdure.partition_waiting.key)

-- name: ChildrenDropped
-- Children whose unique key already existed: the parent does not wait for them, and
-- receives the list.
update perdure.instances
set dropped = (
  select json_group_array(json_object('ordinal', o.value->>2, 'existing', u.id))
  from jsonb_each(?1) o
  left join perdure.uniques u on u.name = o.value->>3 and u.key = o.value->>4
  where o.value->>0 = perdure.instances.id and not exists (select 1 from perdure.instances i where i.id = o.value->>1)
)
where id in (
  select o.value->>0
  from jsonb_each(?1) o
  where not exists (select 1 from perdure.instances i where i.id = o.value->>1)
)
;
update perdure.barriers
set pending = pending - lost.n, until = max(until - lost.n, 0)
from (
  select o.value->>0 as parent, count(*) as n
  from jsonb_each(?1) o
  where not exists (select 1 from perdure.instances i where i.id = o.value->>1)
  group by o.value->>0
) lost
where perdure.barriers.parent_id = lost.parent

-- name: ChildList
select i.id, i.fsm, i.ordinal, f.status, f.result, f.error, coalesce(f.state, i.state)
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.parent_id = ?1 and i.parent_fanout in (?2, -?2)
order by i.ordinal
