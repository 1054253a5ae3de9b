-- The invariants of state machines in every snapshot, on MySQL. Each statement returns the
-- violations of its rule: the id of an instance, or another key, and a description of the
-- problem. Rows of other kinds in the tables ready and leases are skipped: their queues
-- contain a tab.

-- name: InvariantPlace
-- An unfinished instance is in exactly one place. If it is in none of the tables, a lease
-- holds it, and no process has revoked that claim.
select i.id, coalesce(group_concat(p.place order by p.place separator ', '), 'nowhere')
from perdure.instances i
left join perdure.finished f on f.id = i.id
left join (
  select id, 'ready' as place from perdure.ready where locate(char(9 using utf8mb4), queue) = 0
  union all
  select id, 'waiting' from perdure.waiting
  union all
  select parent_id, 'barriers' from perdure.barriers
  union all
  select id, 'unrouted' from perdure.unrouted
  union all
  select id, 'partition_waiting' from perdure.partition_waiting
) p on p.id = i.id
where f.id is null
group by i.id
having count(p.place) > 1 or count(p.place) = 0 and not exists (
  select 1
  from perdure.leases l
  where locate(i.id, l.ids) > 0 and not exists (select 1 from perdure.interrupts x where x.id = i.id and x.token = l.token)
)

-- name: InvariantEnded
-- Rows that belong to an instance belong to an existing, unfinished instance.
select p.id, concat(p.place, case when i.id is null then ' of no instance' else ' of one that has ended' end)
from (
  select id, 'ready' as place from perdure.ready where locate(char(9 using utf8mb4), queue) = 0
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
left join perdure.finished f on f.id = p.id
where i.id is null or f.id is not null

-- name: InvariantKept
-- Rows that are kept after an instance has finished are kept as long as the instance.
select p.id, concat(p.place, ' of no instance')
from (
  select id, 'finished' as place from perdure.finished
  union all
  select id, 'uniques' from perdure.uniques
  union all
  select instance_id, 'journal' from perdure.journal
  union all
  select target_id, 'signals' from perdure.signals
  union all
  select target_id, 'signal_keys' from perdure.signal_keys
  union all
  select id, 'attempts' from perdure.attempts where kind = 'instance'
) p
left join perdure.instances i on i.id = p.id
where i.id is null

-- name: InvariantReady
-- A ready row has the queue, priority and due time of its instance.
select i.id, 'is ready elsewhere than its queue, priority and due time say'
from perdure.ready r
join perdure.instances i on i.id = r.id
where locate(char(9 using utf8mb4), r.queue) = 0 and (r.queue, r.priority, r.due_at) <> (i.queue, i.priority, i.due_at)

-- name: InvariantWake
-- No instance waits while it has an unseen signal that it waits for.
select w.id, concat('waits in spite of signal ', s.seq, ' ', s.name)
from perdure.waiting w
straight_join json_table(w.names, '$[*]' columns (name varchar(128) collate {collation} path '$')) n
straight_join perdure.instances i force index (primary) on i.id = w.id
straight_join perdure.signals s force index (signals_target_idx) on s.target_id = w.id and s.name = n.name
where i.seen is null or not json_contains(i.seen, cast(s.seq as char))

-- name: InvariantWaiting
-- A waiting instance waits for the signals that its row names.
select w.id, 'waits for other signals than its row says'
from perdure.waiting w
join perdure.instances i on i.id = w.id
where not i.awaits <=> w.names

-- name: InvariantBarrier
-- A barrier counts the unfinished children of its fan-out, and is not open. It is not
-- counted while the children are being reopened.
select b.parent_id, concat('barrier of fan-out ', b.fanout, ' waits for ', b.pending, ' until ', b.until, ', with ', b.live, ' live children')
from (
  select x.*, (
    select count(*)
    from perdure.instances i
    left join perdure.finished f on f.id = i.id
    where i.parent_id = x.parent_id and i.parent_fanout = x.fanout and f.id is null
  ) as live
  from perdure.barriers x
) b
join perdure.instances p on p.id = b.parent_id
where b.fanout <> p.fanout or case when b.pending > 500000000
  then not exists (select 1 from perdure.tree_ends t where t.parent_id = b.parent_id and t.kind = 'reopen')
  else b.pending <> b.live or b.pending <= b.until end

-- name: InvariantUnique
-- A unique key is held by an instance in its scope, and every such instance holds its key.
select u.id, concat('occupies ', u.`key`, ', which it has left')
from perdure.uniques u
join perdure.instances i on i.id = u.id
left join perdure.finished f on f.id = u.id
where not (i.unique_name <=> u.name and i.unique_key <=> u.`key`)
  or f.status is not null and not case i.unique_scope
    when 1 then f.status = 'done'
    when 2 then f.status in ('stopped', 'failed', 'quarantined')
    else i.unique_scope = 3
  end
union all
select i.id, concat('has lost its key ', i.unique_key)
from perdure.instances i
left join perdure.finished f on f.id = i.id
left join perdure.uniques u on u.name = i.unique_name and u.`key` = i.unique_key and u.id = i.id
where i.unique_key is not null and f.id is null and u.id is null

-- name: InvariantPartition
-- Every partition key with unfinished instances has a head; the other instances are in its
-- queue.
select i.id, concat('is neither at the head of ', i.partition_key, ' nor in its queue')
from perdure.instances i
left join perdure.finished f on f.id = i.id
left join perdure.partition_heads h on h.`key` = i.partition_key and h.head = i.id
left join perdure.partition_waiting w on w.`key` = i.partition_key and w.id = i.id
where i.partition_key is not null and f.id is null and h.`key` is null and w.id is null
union all
select h.head, concat('is the head of ', h.`key`, ', which is not its key')
from perdure.partition_heads h
join perdure.instances i on i.id = h.head
where not i.partition_key <=> h.`key`
union all
select w.id, concat('is in the queue of ', w.`key`, ' wrongly')
from perdure.partition_waiting w
left join perdure.partition_heads h on h.`key` = w.`key`
left join perdure.instances i on i.id = w.id
where h.`key` is null or h.head = w.id or w.seq > h.tail or not i.partition_key <=> w.`key`

-- name: InvariantDeadline
-- Unfinished instances with a deadline are in the list of deadlines.
select i.id, 'has a deadline that is not on the list'
from perdure.instances i
left join perdure.finished f on f.id = i.id
left join perdure.deadlines d on d.at = i.deadline_at and d.id = i.id
where i.deadline_at is not null and f.id is null and d.id is null
union all
select d.id, 'is on the list with another deadline than its own'
from perdure.deadlines d
join perdure.instances i on i.id = d.id
where not i.deadline_at <=> d.at

-- name: InvariantInterrupt
-- A revoked claim belongs to an existing lease. Its instance has finished or restarted
-- since, which is not checked.
select x.id, 'was interrupted in a lease that is gone'
from perdure.interrupts x
left join perdure.leases l on l.token = x.token
where l.token is null

-- name: InvariantTree
-- Children are ended only because their parent has finished. The row of a parent that was
-- retried since is dropped before the children are reopened.
select t.parent_id, 'lives, but its children are being ended'
from perdure.tree_ends t
join perdure.instances i on i.id = t.parent_id
left join perdure.finished f on f.id = t.parent_id
where t.kind = 'end' and f.id is null
  and not exists (select 1 from perdure.tree_ends r where r.parent_id = t.parent_id and r.kind = 'reopen' and r.seq > t.seq)
union all
select f.id, 'was ended by an instance that is not its parent'
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.ended_by is not null and not f.ended_by <=> i.parent_id

-- name: InstanceDoctorStuck
-- A claim that expired long ago was returned by some process.
select i.id, concat(i.fsm, '@', i.version, ', claimed by ', l.worker)
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join perdure.instances i on i.id = held.id
where locate(char(9 using utf8mb4), l.queue) = 0 and l.expires_at < ?
  and not exists (select 1 from perdure.finished p where p.id = i.id)
  and not exists (select 1 from perdure.ready p where p.queue = i.queue and p.suspect = 0 and p.priority = i.priority and p.due_at = i.due_at and p.id = i.id)
  and not exists (select 1 from perdure.waiting p where p.id = i.id)
  and not exists (select 1 from perdure.barriers p where p.parent_id = i.id)
  and not exists (select 1 from perdure.unrouted p where p.id = i.id)
  and not exists (select 1 from perdure.partition_waiting p where p.id = i.id)
  and not exists (select 1 from perdure.interrupts p where p.id = i.id and p.token = l.token)
  and not exists (select 1 from perdure.ready p where p.queue = i.queue and p.suspect = 1 and p.priority = i.priority and p.due_at = i.due_at and p.id = i.id)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and locate(i.id, newer.ids) > 0)
order by i.id
limit 1000

-- name: InstanceDoctorUnknown
-- A live instance is of a definition and at a step that some process has served.
select i.id, concat(i.fsm, '@', i.version, case when d.fsm is null then ' was never served' else concat(' has no step ', i.step) end)
from perdure.instances i
left join perdure.definitions d on d.fsm = i.fsm and d.version = i.version
where not exists (select 1 from perdure.finished f where f.id = i.id)
  and case when d.fsm is null
    then not exists (select 1 from perdure.remote_definitions r where r.fsm = i.fsm and r.version = i.version)
    else not json_contains(d.steps, json_quote(i.step))
  end
order by i.id
limit 1000

-- name: StateTypes
-- The types of the states of live instances, and the keys with which they are encrypted.
select i.fsm, i.version, lower(case when json_valid(i.state) then json_type(i.state) else 'invalid' end),
  case when left(i.state, 16) = '{"$sealed":"v1",' then coalesce(json_unquote(json_extract(i.state, '$.key')), '?') else '' end, min(i.id), count(*)
from perdure.instances i
where not exists (select 1 from perdure.finished f where f.id = i.id)
group by 1, 2, 3, 4
order by 1, 2, 3, 4
limit 10000
