-- The invariants of state machines in every snapshot, on SQLite. Each statement returns
-- the violations of its rule: the id of an instance, or another key, and a description
-- of the problem. Rows of hooks in the tables ready and leases are skipped.

-- name: InvariantPlace
-- An unfinished instance is in exactly one place. If it is in none of the tables, a
-- lease holds it, and no process has revoked that claim.
select i.id, coalesce(group_concat(p.place, ', '), 'nowhere')
from perdure.instances i
left join (
  select id, 'ready' as place from perdure.ready where instr(queue, char(9)) = 0
  union all
  select id, 'waiting' from perdure.waiting
  union all
  select parent_id, 'barriers' from perdure.barriers
  union all
  select id, 'unrouted' from perdure.unrouted
  union all
  select id, 'partition_waiting' from perdure.partition_waiting
) p on p.id = i.id
where not exists (select 1 from perdure.finished f where f.id = i.id)
group by i.id
having count(p.place) > 1 or count(p.place) = 0 and not exists (
  select 1
  from perdure.leases l
  where i.id in (select value from json_each(l.ids)) and not exists (select 1 from perdure.interrupts x where x.id = i.id and x.token = l.token)
)

-- name: InvariantEnded
-- Rows that belong to an instance belong to an existing, unfinished instance.
select p.id, p.place || case when i.id is null then ' of no instance' else ' of one that has ended' end
from (
  select id, 'ready' as place from perdure.ready where instr(queue, char(9)) = 0
  union all
  select id, 'waiting' from perdure.waiting
  union all
  select parent_id, 'barriers' from perdure.barriers
  union all
  select id, 'unrouted' from perdure.unrouted
  union all
  select id, 'partition_waiting' from perdure.partition_waiting
  union all
  select head, 'partition_heads' from perdure.partition_heads
  union all
  select id, 'deadlines' from perdure.deadlines
) p
left join perdure.instances i on i.id = p.id
where i.id is null or exists (select 1 from perdure.finished f where f.id = p.id)

-- name: InvariantReady
-- A ready row has the queue, priority and due time of its instance.
select i.id, 'is ready elsewhere than its queue, priority and due time say'
from perdure.ready r
join perdure.instances i on i.id = r.id
where instr(r.queue, char(9)) = 0 and (r.queue, r.priority, r.due_at) is not (i.queue, i.priority, i.due_at)

-- name: InvariantWake
-- No instance waits while it has an unseen signal that it waits for.
select w.id, 'waits in spite of signal ' || s.seq || ' ' || s.name
from perdure.waiting w
join perdure.instances i on i.id = w.id
join perdure.signals s on s.target_id = w.id and s.name in (select n.value from json_each(w.names) n)
where i.seen is null or s.seq not in (select q.value from json_each(i.seen) q)

-- name: InvariantWaiting
-- A waiting instance waits for the signals that its row names.
select w.id, 'waits for other signals than its row says'
from perdure.waiting w
join perdure.instances i on i.id = w.id
where i.awaits is not w.names

-- name: InvariantBarrier
-- A barrier counts the unfinished children of its fan-out, and is not open. It is not
-- counted while the children are being reopened.
select b.parent_id, 'barrier of fan-out ' || b.fanout || ' waits for ' || b.pending || ' until ' || b.until || ', with ' || b.live || ' live children'
from (
  select x.*, (
      select count(*)
      from perdure.instances i
      where i.parent_id = x.parent_id and i.parent_fanout = x.fanout and not exists (select 1 from perdure.finished f where f.id = i.id)
    ) as live
  from perdure.barriers x
) b
join perdure.instances p on p.id = b.parent_id
where b.fanout <> p.fanout or case when b.pending > 500000000
  then not exists (select 1 from perdure.tree_ends t where t.parent_id = b.parent_id and t.kind = 'reopen')
  else b.pending <> b.live or b.pending <= b.until end

-- name: InvariantUnique
-- A unique key is held by an instance in its scope, and every such instance holds its
-- key.
select u.id, 'occupies ' || u.key || ', which it has left'
from perdure.uniques u
join perdure.instances i on i.id = u.id
left join perdure.finished f on f.id = u.id
where (i.unique_name, i.unique_key) is not (u.name, u.key)
  or f.status is not null and not case i.unique_scope
    when 1 then f.status = 'done'
    when 2 then f.status in ('stopped', 'failed', 'quarantined')
    else i.unique_scope = 3
  end
union all
select i.id, 'has lost its key ' || i.unique_key
from perdure.instances i
where i.unique_key is not null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.uniques u where u.name = i.unique_name and u.key = i.unique_key and u.id = i.id)

-- name: InvariantPartition
-- Every partition key with unfinished instances has a head; the other instances are in
-- its queue.
select i.id, 'is neither at the head of ' || i.partition_key || ' nor in its queue'
from perdure.instances i
where i.partition_key is not null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head = i.id)
  and not exists (select 1 from perdure.partition_waiting w where w.key = i.partition_key and w.id = i.id)
union all
select h.head, 'is the head of ' || h.key || ', which is not its key'
from perdure.partition_heads h
join perdure.instances i on i.id = h.head
where i.partition_key is not h.key
union all
select w.id, 'is in the queue of ' || w.key || ' wrongly'
from perdure.partition_waiting w
left join perdure.partition_heads h on h.key = w.key
left join perdure.instances i on i.id = w.id
where h.key is null or h.head = w.id or w.seq > h.tail or i.partition_key is not w.key

-- name: InvariantDeadline
-- Unfinished instances with a deadline are in the list of deadlines.
select i.id, 'has a deadline that is not on the list'
from perdure.instances i
where i.deadline_at is not null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.deadlines d where d.at = i.deadline_at and d.id = i.id)
union all
select d.id, 'is on the list with another deadline than its own'
from perdure.deadlines d
join perdure.instances i on i.id = d.id
where i.deadline_at is not d.at

-- name: InvariantTree
-- Children are ended only because their parent has finished. The row of a parent that
-- was retried since is dropped before the children are reopened.
select t.parent_id, 'lives, but its children are being ended'
from perdure.tree_ends t
join perdure.instances i on i.id = t.parent_id
where t.kind = 'end' and not exists (select 1 from perdure.finished f where f.id = t.parent_id)
  and not exists (select 1 from perdure.tree_ends r where r.parent_id = t.parent_id and r.kind = 'reopen' and r.seq > t.seq)
union all
select f.id, 'was ended by an instance that is not its parent'
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.ended_by is not null and f.ended_by is not i.parent_id

-- name: InstanceDoctorStuck
-- A claim that expired long ago was returned by some process.
select i.id, i.fsm || '@' || i.version || ', claimed by ' || l.worker
from perdure.leases l, json_each(l.ids) held
join perdure.instances i on i.id = held.value
where instr(l.queue, char(9)) = 0 and l.expires_at < ?
  and not exists (select 1 from perdure.finished p where p.id = i.id)
  and not exists (select 1 from perdure.ready p where p.queue = i.queue and p.suspect in (0, 1) and p.priority = i.priority and p.due_at = i.due_at and p.id = i.id)
  and not exists (select 1 from perdure.waiting p where p.id = i.id)
  and not exists (select 1 from perdure.barriers p where p.parent_id = i.id)
  and not exists (select 1 from perdure.unrouted p where p.id = i.id)
  and not exists (select 1 from perdure.partition_waiting p where p.id = i.id)
  and not exists (select 1 from perdure.interrupts p where p.id = i.id and p.token = l.token)
  and not exists (select 1 from perdure.leases newer, json_each(newer.ids) n where newer.seq > l.seq and n.value = i.id)
order by i.id
limit 1000

-- name: InstanceDoctorUnknown
-- A live instance is of a definition and at a step that some process has served.
select i.id, i.fsm || '@' || i.version || case when d.fsm is null then ' was never served' else ' has no step ' || i.step end
from perdure.instances i
left join perdure.definitions d on d.fsm = i.fsm and d.version = i.version
where not exists (select 1 from perdure.finished f where f.id = i.id)
  and case when d.fsm is null
    then not exists (select 1 from perdure.remote_definitions r where r.fsm = i.fsm and r.version = i.version)
    else not exists (select 1 from json_each(d.steps) s where s.value = i.step)
  end
order by i.id
limit 1000

-- name: StateTypes
-- The types of the states of live instances, and the keys with which they are encrypted.
select i.fsm, i.version, case when json_valid(i.state) then json_type(i.state) else 'invalid' end,
  case when substr(i.state, 1, 16) = '{"$sealed":"v1",' then coalesce(i.state ->> 'key', '?') else '' end, min(i.id), count(*)
from perdure.instances i
where not exists (select 1 from perdure.finished f where f.id = i.id)
group by 1, 2, 3, 4
order by 1, 2, 3, 4
limit 10000
