-- Ending trees of instances, one set at a time, on SQLite. Only one transaction
-- writes at a time, so no locks are needed.

-- name: TreeInsert
-- An existing row moves to the end: the rows of one parent are handled in their
-- order.
insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
select o.value->>0, o.value->>1, o.value->>2, o.value->>3, o.value->>4, o.value->>5, ?3 + ?1, ?3
from jsonb_each(?2) o
where true
on conflict (parent_id, kind, last_fanout) do update
set seq = (select max(x.seq) + 1 from perdure.tree_ends x), first_fanout = excluded.first_fanout, root_id = excluded.root_id, reason = excluded.reason, after_fanout = null, after_ordinal = null

-- name: TreeAdvance
-- Stores the child that the pass has reached, or restarts the pass.
update perdure.tree_ends
set after_fanout = o.value->>1, after_ordinal = o.value->>2, due_at = ?1 + ?2
from jsonb_each(?3) o
where perdure.tree_ends.seq = o.value->>0

-- name: TreeLive
-- Returns the unfinished children of rows, in the order of their passes. A child
-- that runs its cancel step is skipped. A child of a fan-out that the parent
-- cancelled belongs to the row of that fan-out.
select t.seq, i.id, i.parent_fanout, i.ordinal
from perdure.tree_ends t
join perdure.instances i on i.parent_id = t.parent_id
where t.seq in (select value->>0 from jsonb_each(?1))
  and (i.parent_fanout, i.ordinal) > (coalesce(t.after_fanout, -2147483647), coalesce(t.after_ordinal, -1))
  and abs(i.parent_fanout) between t.first_fanout and t.last_fanout and i.cancel_reason is null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and (t.kind = 'cancel' or not exists (
    select 1
    from perdure.tree_ends given
    where given.parent_id = t.parent_id and given.kind = 'cancel' and abs(i.parent_fanout) between given.first_fanout and given.last_fanout
  ))
order by t.seq, i.parent_fanout, i.ordinal
limit ?2

-- name: EndsDue
-- Returns a row if a deadline has passed, or a tree waits for a process.
select 1
where exists (select 1 from perdure.deadlines where at <= ?1) or exists (select 1 from perdure.tree_ends where due_at <= ?1)

-- name: DeadlineTake
select id
from perdure.deadlines
where at <= ?1 and id not in (select value->>0 from jsonb_each(?2))
order by at
limit ?3

-- name: LeaseTakeMany
select l.token
from perdure.leases l
where exists (select 1 from json_each(l.ids) held where held.value in (select value->>0 from jsonb_each(?1)))

-- name: InstanceTakeMany
select id
from perdure.instances
where id in (select value->>0 from jsonb_each(?1))
order by id

-- name: PartitionTakeMany
select key
from perdure.partition_heads
where key in (select value->>0 from jsonb_each(?1))

-- name: BarrierTakeMany
select parent_id
from perdure.barriers
where parent_id in (select value->>0 from jsonb_each(?1))

-- name: ReadyRemoveMany
delete from perdure.ready
where suspect in (0, 1)
  and (queue, priority, due_at, id) in (select i.queue, i.priority, i.due_at, i.id from perdure.instances i where i.id in (select value->>0 from jsonb_each(?1)))
returning id

-- name: WaitingRemoveMany
-- The instances record what they waited for, and the rest of their wait.
update perdure.instances
set wait = json_object('for', 'signals', 'left', w.deadline_at - ?2)
from perdure.waiting w
where w.id = perdure.instances.id and w.id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.waiting
where id in (select value->>0 from jsonb_each(?1))
returning id

-- name: BarrierRemoveMany
update perdure.instances
set wait = json_object('for', 'children', 'until', b.until, 'rest', json(iif(b.cancel_rest, 'true', 'false')), 'left', b.deadline_at - ?2)
from perdure.barriers b
where b.parent_id = perdure.instances.id and b.parent_id in (select value->>0 from jsonb_each(?1))
;
delete from perdure.barriers
where parent_id in (select value->>0 from jsonb_each(?1))
returning parent_id

-- name: UnroutedRemoveMany
delete from perdure.unrouted
where (queue, fsm, version, id) in (select i.queue, i.fsm, i.version, i.id from perdure.instances i where i.id in (select value->>0 from jsonb_each(?1)))
returning id

-- name: PartitionRemoveMany
delete from perdure.partition_waiting
where (key, id) in (select value->>0, value->>1 from jsonb_each(?1))
returning id

-- name: HeldMany
-- Returns the leases that hold instances that are in no other place, the newest
-- lease first.
select i.id, l.token
from perdure.leases l, json_each(l.ids) held
join perdure.instances i on i.id = held.value
where held.value in (select value->>0 from jsonb_each(?1))
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect in (0, 1) and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
  and not exists (select 1 from perdure.waiting w where w.id = i.id)
  and not exists (select 1 from perdure.barriers b where b.parent_id = i.id)
  and not exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.id = i.id)
  and not exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id)
order by l.seq desc

-- name: InterruptMany
insert into perdure.interrupts (id, token)
select value->>0, value->>1
from jsonb_each(?1)
where true
on conflict do nothing
