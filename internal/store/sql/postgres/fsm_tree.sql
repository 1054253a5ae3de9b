-- Ending trees of instances, one set at a time, on PostgreSQL. No statement here
-- waits for a lock: it skips locked rows, which a later pass reads.

-- name: TreeInsert
-- An existing row moves to the end: the rows of one parent are handled in their
-- order.
insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select o.parent, o.first, o.last, o.kind, o.root, o.reason, t.now + ?::bigint * interval '1 microsecond', t.now
from unnest(?::uuid[], ?::integer[], ?::integer[], ?::text[], ?::uuid[], ?::text[]) as o (parent, first, last, kind, root, reason),
  (select coalesce(?::timestamptz, now()) as now) t
on conflict (parent_id, kind, last_fanout) do update
set seq = default, first_fanout = excluded.first_fanout, root_id = excluded.root_id, reason = excluded.reason, after_fanout = null, after_ordinal = null

-- name: TreeAdvance
-- Stores the child that the pass has reached, or restarts the pass.
update perdure.tree_ends t
set after_fanout = o.fanout, after_ordinal = o.ordinal, due_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond'
from unnest(?::bigint[], ?::integer[], ?::integer[]) as o (seq, fanout, ordinal)
where t.seq = o.seq

-- name: TreeLive
-- Returns the unfinished children of rows, in the order of their passes. A child
-- that runs its cancel step is skipped. A child of a fan-out that the parent
-- cancelled belongs to the row of that fan-out.
select t.seq, c.id::text, c.parent_fanout, c.ordinal
from perdure.tree_ends t
cross join lateral (
  select i.id, i.parent_fanout, i.ordinal
  from perdure.instances i
  where i.parent_id = t.parent_id
    and (i.parent_fanout, i.ordinal) > (coalesce(t.after_fanout, -2147483647), coalesce(t.after_ordinal, -1))
    and abs(i.parent_fanout) between t.first_fanout and t.last_fanout and i.cancel_reason is null
    and (select true from perdure.finished f where f.id = i.id limit 1) is null
    and (t.kind = 'cancel' or not exists (
      select 1
      from perdure.tree_ends given
      where given.parent_id = t.parent_id and given.kind = 'cancel' and abs(i.parent_fanout) between given.first_fanout and given.last_fanout
    ))
  order by i.parent_fanout, i.ordinal
  limit $2
) c
where t.seq = any($1::bigint[])
order by t.seq, c.parent_fanout, c.ordinal
limit $2

-- name: DeadlineTake
select d.id::text
from perdure.deadlines d
where d.at <= coalesce(?::timestamptz, now()) and d.id <> all(?::uuid[])
order by d.at
limit ?

-- name: LeaseTakeMany
-- Leases are locked before instances, as outcomes lock them.
select token::text
from perdure.leases
where ids && ?::uuid[]
order by token
for update skip locked

-- name: InstanceTakeMany
select i.id::text
from perdure.instances i
where i.id = any(?::uuid[])
order by i.id
for no key update of i skip locked

-- name: PartitionTakeMany
select key
from perdure.partition_heads
where key = any(?::text[])
order by key
for update skip locked

-- name: BarrierTakeMany
select parent_id::text
from perdure.barriers
where parent_id = any(?::uuid[])
order by parent_id
for update skip locked

-- name: ReadyRemoveMany
-- Deletes by physical places (ctid), one by one: the planner may turn a join into a
-- scan of the whole table. Both values of suspect are listed, because the index is
-- not used after a condition with two.
delete from perdure.ready r
where r.ctid = any(array(
  select x.ctid
  from perdure.instances i
  cross join (values (false), (true)) as s (suspect)
  cross join lateral (
    select r.ctid
    from perdure.ready r
    where r.queue = i.queue and r.suspect = s.suspect and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id
    for update skip locked
  ) x
  where i.id = any(?::uuid[])
))
returning r.id::text

-- name: WaitingRemoveMany
-- The instances record what they waited for, and the rest of their wait.
with gone as (
  delete from perdure.waiting w
  where w.ctid = any(array(
    select ctid
    from perdure.waiting
    where id = any(?::uuid[])
    for update skip locked
  ))
  returning w.id, w.deadline_at
)
update perdure.instances i
set wait = json_build_object('for', 'signals', 'left', (extract(epoch from gone.deadline_at - coalesce(?::timestamptz, now())) * 1000000)::bigint)
from gone
where i.id = gone.id
returning i.id::text

-- name: BarrierRemoveMany
with gone as (
  delete from perdure.barriers b
  where b.ctid = any(array(
    select ctid
    from perdure.barriers
    where parent_id = any(?::uuid[])
    for update skip locked
  ))
  returning b.parent_id, b.until, b.deadline_at, b.cancel_rest
)
update perdure.instances i
set wait = json_build_object('for', 'children', 'until', gone.until, 'rest', gone.cancel_rest,
  'left', (extract(epoch from gone.deadline_at - coalesce(?::timestamptz, now())) * 1000000)::bigint)
from gone
where i.id = gone.parent_id
returning i.id::text

-- name: UnroutedRemoveMany
delete from perdure.unrouted u
where u.ctid = any(array(
  select x.ctid
  from perdure.instances i
  cross join lateral (
    select u.ctid
    from perdure.unrouted u
    where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id
    for update skip locked
  ) x
  where i.id = any(?::uuid[])
))
returning u.id::text

-- name: PartitionRemoveMany
delete from perdure.partition_waiting p
where p.ctid = any(array(
  select x.ctid
  from perdure.partition_waiting x
  where x.key = any(?::text[]) and x.id = any(?::uuid[])
  for update skip locked
))
returning p.id::text

-- name: HeldMany
-- Returns the leases that hold instances that are in no other place, the newest
-- lease first. One snapshot is required: while a claim is being committed, its
-- instance is still ready. "offset 0" fixes the order: the few leases first, then
-- their instances by key. With stale statistics the planner began with all instances.
select i.id::text, held.token::text
from (
  select l.seq, l.token, o.id
  from perdure.leases l
  cross join unnest(l.ids) as o (id)
  where l.ids && $1::uuid[] and o.id = any($1::uuid[])
  offset 0
) held
cross join lateral (
  select i.id
  from perdure.instances i
  where i.id = held.id
    and not exists (select 1 from perdure.finished f where f.id = i.id)
    and not exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = false and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
    and not exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = true and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
    and not exists (select 1 from perdure.waiting w where w.id = i.id)
    and not exists (select 1 from perdure.barriers b where b.parent_id = i.id)
    and not exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id)
    and not exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id)
  offset 0
) i
order by held.seq desc

-- name: InterruptMany
insert into perdure.interrupts (id, token)
select id, token
from unnest(?::uuid[], ?::uuid[]) as o (id, token)
on conflict do nothing
