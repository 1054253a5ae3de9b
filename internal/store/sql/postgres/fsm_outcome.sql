-- Outcomes of steps, many in one statement, on PostgreSQL. The leases are locked
-- and verified first. The other statements receive only claims that are still held.

-- name: LeaseShare
-- Blocks the reaper and cancel until the outcomes are committed, but not the
-- heartbeat: a heartbeat must never wait.
select token::text
from perdure.leases
where token = any(?::uuid[])
order by token
for key share

-- name: InterruptDelete
delete from perdure.interrupts
where (id, token) in (select id, token from unnest(?::uuid[], ?::uuid[]) as held (id, token))

-- name: InstanceLock
-- Locks in order. The delivery of a signal takes the same lock first.
select id::text
from perdure.instances
where id = any(?::uuid[])
order by id
for no key update

-- name: InstanceStep
-- Sets the new step and state. No indexed column changes. Progress resets the
-- crashes.
update perdure.instances i
set step = o.step, state = o.state::json, attempt = o.attempt, failures = o.failures, awaits = o.awaits::json, keeps = o.keeps, seen = o.seen::json,
  timed_out = o.timed_out, crashes = case when o.attempt = 0 then 0 else i.crashes end, batch_limit = null, fanout = o.fanout, dropped = o.dropped::json, error = o.error, due_at = t.now + o.delay * interval '1 microsecond',
  awaited = coalesce(o.awaited::json, i.awaited), rerun = o.rerun, wait = null
from unnest(?::uuid[], ?::text[], ?::text[], ?::integer[], ?::text[], ?::boolean[], ?::text[], ?::boolean[], ?::integer[], ?::text[], ?::text[], ?::bigint[], ?::integer[],
  ?::text[], ?::boolean[]) as o (id, step, state, attempt, awaits, keeps, seen, timed_out, fanout, dropped, error, delay, failures, awaited, rerun),
  (select coalesce(?::timestamptz, now()) as now) t
where i.id = o.id

-- name: InstanceStepPlain
-- InstanceStep for instances that start a step and wait for nothing.
update perdure.instances i
set step = o.step, state = o.state::json, attempt = 0, failures = 0, awaits = null, keeps = false, seen = null, timed_out = false, crashes = 0, batch_limit = null,
  fanout = o.fanout, dropped = null, error = null, due_at = t.now + o.delay * interval '1 microsecond', rerun = false, wait = null
from unnest(?::uuid[], ?::text[], ?::text[], ?::integer[], ?::bigint[]) as o (id, step, state, fanout, delay), (select coalesce(?::timestamptz, now()) as now) t
where i.id = o.id

-- name: SignalLate
-- Returns signals that an instance once awaited and that no step received. Runs
-- after the instances are locked. Senders take the same lock: a signal is visible
-- here, or its sender will find that the instance has finished.
select s.target_id::text, s.name
from unnest(?::uuid[], ?::text[], ?::text[]) as o (id, names, given)
join perdure.signals s on s.target_id = o.id
where not s.received and s.name in (select json_array_elements_text(o.names::json))
  and s.seq not in (select json_array_elements_text(o.given::json)::bigint)

-- name: SignalReceive
update perdure.signals
set received = true
where seq = any(?::bigint[])

-- name: AwaitPark
-- Runs after the update of the instance, which locked it: a signal is visible here,
-- or its sender will find the instance waiting.
with parked as (
  select o.id, array(select json_array_elements_text(o.names::json)) as names, o.seen, o.timeout
  from unnest(?::uuid[], ?::text[], ?::text[], ?::bigint[]) as o (id, names, seen, timeout)
), judged as (
  select p.id, p.names, p.timeout, exists (
      select 1
      from perdure.signals s
      where s.target_id = p.id and s.name = any(p.names)
        and (p.seen is null or s.seq not in (select json_array_elements_text(p.seen::json)::bigint))
    ) as hit
  from parked p
), waits as (
  insert into perdure.waiting (id, names, deadline_at)
  select id, names, coalesce(?::timestamptz, now()) + timeout * interval '1 microsecond'
  from judged
  where not hit
)
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from judged j
join perdure.instances i on i.id = j.id
where j.hit
returning queue

-- name: BarrierInsert
insert into perdure.barriers (parent_id, fanout, pending, until, deadline_at, cancel_rest)
select id, fanout, pending, until, coalesce(?::timestamptz, now()) + timeout * interval '1 microsecond', cancel_rest
from unnest(?::uuid[], ?::integer[], ?::integer[], ?::integer[], ?::bigint[], ?::boolean[]) as o (id, fanout, pending, until, timeout, cancel_rest)

-- name: BarrierOpen
-- Opens barriers whose condition is met, for example because all children were
-- dropped.
with gone as (
  delete from perdure.barriers b
  where b.parent_id = any($1::uuid[]) and b.pending <= b.until
  returning b.parent_id, b.fanout, b.pending, b.cancel_rest
), rest as (
  insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
  select parent_id, fanout, fanout, 'cancel', parent_id, 'enough of the children have ended', coalesce($2::timestamptz, now()), coalesce($2::timestamptz, now())
  from gone
  where cancel_rest and pending > 0
  on conflict (parent_id, kind, last_fanout) do nothing
), due as (
  update perdure.instances i
  set due_at = coalesce($2::timestamptz, now())
  from gone
  where i.id = gone.parent_id
  returning i.queue, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from due
returning queue

-- name: BarrierLock
select parent_id::text
from perdure.barriers
where parent_id = any(?::uuid[])
order by parent_id
for update

-- name: BarrierCount
update perdure.barriers b
set pending = b.pending - o.n
from unnest(?::uuid[], ?::integer[], ?::integer[]) as o (parent, fanout, n)
where b.parent_id = o.parent and b.fanout = o.fanout

-- name: FinishMany
insert into perdure.finished (id, status, result, error, state, ended_by, finished_at)
select id, status, result::json, error, state::json, ended_by, coalesce(?::timestamptz, now())
from unnest(?::uuid[], ?::text[], ?::text[], ?::text[], ?::text[], ?::uuid[]) as o (id, status, result, error, state, ended_by)

-- name: UniqueLeave
delete from perdure.uniques u
using unnest(?::text[], ?::text[], ?::uuid[]) as o (name, key, id)
where u.name = o.name and u.key = o.key and u.id = o.id

-- name: DeadlineDelete
delete from perdure.deadlines d
using unnest(?::timestamptz[], ?::uuid[]) as o (at, id)
where d.at = o.at and d.id = o.id

-- name: PartitionLock
select key
from perdure.partition_heads
where key = any(?::text[])
order by key
for update

-- name: PartitionPromote
-- The next instance of each key becomes its head. A key without instances is
-- deleted.
with next as (
  select distinct on (w.key) w.key, w.seq, w.id
  from perdure.partition_waiting w
  where w.key = any(?::text[])
  order by w.key, w.seq
), moved as (
  delete from perdure.partition_waiting w
  using next
  where w.key = next.key and w.seq = next.seq
), headed as (
  update perdure.partition_heads h
  set head = next.id
  from next
  where h.key = next.key
), gone as (
  delete from perdure.partition_heads h
  where h.key = any(?::text[]) and not exists (select 1 from next where next.key = h.key)
), due as (
  update perdure.instances i
  set due_at = greatest(i.due_at, coalesce(?::timestamptz, now()))
  from next
  where i.id = next.id
  returning i.queue, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from due
returning queue

-- name: ChildrenDropped
-- Children whose unique key already existed: the parent does not wait for them, and
-- receives the list.
with lost as (
  select o.parent, count(*) as n,
    json_agg(json_build_object('ordinal', o.ordinal, 'existing', u.id::text) order by o.ordinal) as list
  from unnest(?::uuid[], ?::uuid[], ?::integer[], ?::text[], ?::text[]) as o (parent, id, ordinal, name, key)
  left join perdure.uniques u on u.name = o.name and u.key = o.key
  where not exists (select 1 from perdure.instances i where i.id = o.id)
  group by o.parent
), told as (
  update perdure.instances i
  set dropped = lost.list
  from lost
  where i.id = lost.parent
)
update perdure.barriers b
set pending = b.pending - lost.n, until = greatest(b.until - lost.n, 0)
from lost
where b.parent_id = lost.parent

-- name: ChildList
select i.id::text, i.fsm, i.ordinal, f.status, f.result::text, f.error, coalesce(f.state, i.state)::text
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.parent_id = $1::uuid and i.parent_fanout in ($2::integer, -$2::integer)
order by i.ordinal
