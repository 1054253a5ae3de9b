-- The invariants of state machines in every snapshot, on PostgreSQL. Each statement
-- returns the violations of its rule: the id of an instance, or another key, and a
-- description of the problem. Rows of hooks in the tables ready and leases are skipped.

-- name: InvariantPlace
-- An unfinished instance is in exactly one place. If it is in none of the tables, a
-- lease holds it, and no process has revoked that claim.
select i.id::text, coalesce(string_agg(p.place, ', ' order by p.place), 'nowhere')
from perdure.instances i
left join (
  select id, 'ready' as place from perdure.ready where strpos(queue, chr(9)) = 0
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
  where i.id = any(l.ids) and not exists (select 1 from perdure.interrupts x where x.id = i.id and x.token = l.token)
)

-- name: InvariantEnded
-- Rows that belong to an instance belong to an existing, unfinished instance.
select p.id::text, p.place || case when i.id is null then ' of no instance' else ' of one that has ended' end
from (
  select id, 'ready' as place from perdure.ready where strpos(queue, chr(9)) = 0
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
select i.id::text, 'is ready elsewhere than its queue, priority and due time say'
from perdure.ready r
join perdure.instances i on i.id = r.id
where strpos(r.queue, chr(9)) = 0 and (r.queue, r.priority, r.due_at) is distinct from (i.queue, i.priority, i.due_at)

-- name: InvariantWake
-- No instance waits while it has an unseen signal that it waits for.
select w.id::text, 'waits in spite of signal ' || s.seq || ' ' || s.name
from perdure.waiting w
join perdure.instances i on i.id = w.id
join perdure.signals s on s.target_id = w.id and s.name = any(w.names)
where i.seen is null or s.seq not in (select json_array_elements_text(i.seen)::bigint)

-- name: InvariantWaiting
-- A waiting instance waits for the signals that its row names.
select w.id::text, 'waits for other signals than its row says'
from perdure.waiting w
join perdure.instances i on i.id = w.id
where i.awaits is null or w.names <> array(select json_array_elements_text(i.awaits))

-- name: InvariantBarrier
-- A barrier counts the unfinished children of its fan-out, and is not open. It is not
-- counted while the children are being reopened.
select b.parent_id::text, 'barrier of fan-out ' || b.fanout || ' waits for ' || b.pending || ' until ' || b.until || ', with ' || c.live || ' live children'
from perdure.barriers b
join perdure.instances p on p.id = b.parent_id
cross join lateral (
  select count(*) as live
  from perdure.instances i
  where i.parent_id = b.parent_id and i.parent_fanout = b.fanout and not exists (select 1 from perdure.finished f where f.id = i.id)
) c
where b.fanout <> p.fanout or case when b.pending > 500000000
  then not exists (select 1 from perdure.tree_ends t where t.parent_id = b.parent_id and t.kind = 'reopen')
  else b.pending <> c.live or b.pending <= b.until end

-- name: InvariantUnique
-- A unique key is held by an instance in its scope, and every such instance holds its
-- key.
select u.id::text, 'occupies ' || u.key || ', which it has left'
from perdure.uniques u
join perdure.instances i on i.id = u.id
left join perdure.finished f on f.id = u.id
where (i.unique_name, i.unique_key) is distinct from (u.name, u.key)
  or f.status is not null and not case i.unique_scope
    when 1 then f.status = 'done'
    when 2 then f.status in ('stopped', 'failed', 'quarantined')
    else i.unique_scope = 3
  end
union all
select i.id::text, 'has lost its key ' || i.unique_key
from perdure.instances i
where i.unique_key is not null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.uniques u where u.name = i.unique_name and u.key = i.unique_key and u.id = i.id)

-- name: InvariantPartition
-- Every partition key with unfinished instances has a head; the other instances are in
-- its queue.
select i.id::text, 'is neither at the head of ' || i.partition_key || ' nor in its queue'
from perdure.instances i
where i.partition_key is not null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head = i.id)
  and not exists (select 1 from perdure.partition_waiting w where w.key = i.partition_key and w.id = i.id)
union all
select h.head::text, 'is the head of ' || h.key || ', which is not its key'
from perdure.partition_heads h
join perdure.instances i on i.id = h.head
where i.partition_key is distinct from h.key
union all
select w.id::text, 'is in the queue of ' || w.key || ' wrongly'
from perdure.partition_waiting w
left join perdure.partition_heads h on h.key = w.key
left join perdure.instances i on i.id = w.id
where h.key is null or h.head = w.id or w.seq > h.tail or i.partition_key is distinct from w.key

-- name: InvariantDeadline
-- Unfinished instances with a deadline are in the list of deadlines.
select i.id::text, 'has a deadline that is not on the list'
from perdure.instances i
where i.deadline_at is not null
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.deadlines d where d.at = i.deadline_at and d.id = i.id)
union all
select d.id::text, 'is on the list with another deadline than its own'
from perdure.deadlines d
join perdure.instances i on i.id = d.id
where i.deadline_at is distinct from d.at

-- name: InvariantTree
-- Children are ended only because their parent has finished. The row of a parent that
-- was retried since is dropped before the children are reopened.
select t.parent_id::text, 'lives, but its children are being ended'
from perdure.tree_ends t
join perdure.instances i on i.id = t.parent_id
where t.kind = 'end' and not exists (select 1 from perdure.finished f where f.id = t.parent_id)
  and not exists (select 1 from perdure.tree_ends r where r.parent_id = t.parent_id and r.kind = 'reopen' and r.seq > t.seq)
union all
select f.id::text, 'was ended by an instance that is not its parent'
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.ended_by is not null and f.ended_by is distinct from i.parent_id

-- name: InstanceDoctorStuck
-- A claim that expired long ago was returned by some process.
select i.id::text, i.fsm || '@' || i.version || ', claimed by ' || l.worker
from perdure.leases l
cross join unnest(l.ids) as held (id)
join perdure.instances i on i.id = held.id
where strpos(l.queue, chr(9)) = 0 and l.expires_at < ?
  and not exists (select 1 from perdure.finished p where p.id = i.id)
  and not exists (select 1 from perdure.ready p where p.queue = i.queue and p.suspect = (i.batch_limit is not null) and p.priority = i.priority and p.due_at = i.due_at and p.id = i.id)
  and not exists (select 1 from perdure.waiting p where p.id = i.id)
  and not exists (select 1 from perdure.barriers p where p.parent_id = i.id)
  and not exists (select 1 from perdure.unrouted p where p.id = i.id)
  and not exists (select 1 from perdure.partition_waiting p where p.id = i.id)
  and not exists (select 1 from perdure.interrupts p where p.id = i.id and p.token = l.token)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and i.id = any(newer.ids))
order by i.id
limit 1000

-- name: InstanceDoctorUnknown
-- A live instance is of a definition and at a step that some process has served.
select i.id::text, i.fsm || '@' || i.version || case when d.fsm is null then ' was never served' else ' has no step ' || i.step end
from perdure.instances i
left join perdure.definitions d on d.fsm = i.fsm and d.version = i.version
where not exists (select 1 from perdure.finished f where f.id = i.id)
  and case when d.fsm is null
    then not exists (select 1 from perdure.remote_definitions r where r.fsm = i.fsm and r.version = i.version)
    else not exists (select 1 from json_array_elements_text(d.steps) as s (name) where s.name = i.step)
  end
order by i.id
limit 1000

-- name: StateTypes
-- The types of the states of live instances, and the keys with which they are encrypted.
select i.fsm, i.version, json_typeof(i.state), case when left(i.state::text, 16) = '{"$sealed":"v1",' then coalesce(i.state ->> 'key', '?') else '' end, min(i.id::text), count(*)
from perdure.instances i
where not exists (select 1 from perdure.finished f where f.id = i.id)
group by 1, 2, 3, 4
order by 1, 2, 3, 4
limit 10000
