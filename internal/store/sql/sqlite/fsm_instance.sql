-- Starting instances, on SQLite. now is always passed. A set is passed as JSON, with
-- an array for each row. A line with only a semicolon separates the statements of one
-- name. Sets are read with jsonb_each: with json_each, every ->> would convert the
-- row to text again.

-- name: InstanceStart
-- The fast path: no unique key, no partition.
insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, deadline_at, created_at)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9,
  coalesce(value->>10, ?2 + (value->>11)), ?2 + (value->>12), ?2
from jsonb_each(?1)
;
insert into perdure.deadlines (at, id)
select ?2 + (value->>12), value->>0
from jsonb_each(?1)
where value->>12 is not null
;
insert into perdure.ready (queue, priority, due_at, id)
select value->>5, value->>6, coalesce(value->>10, ?2 + (value->>11)), value->>0
from jsonb_each(?1)

-- name: InstanceStartAlike
-- The fastest path: instances that are due now and differ only in their states.
insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at)
select n.value->>0, ?1, ?2, ?3, n.value->>1, ?4, ?5, ?7, ?7
from jsonb_each(?6) n
;
insert into perdure.ready (queue, priority, due_at, id)
select ?4, ?5, ?7, n.value->>0
from jsonb_each(?6) n

-- name: InstanceStartAbsent
-- One instance, unless its id is taken. Its own row is inserted last: until then, the other
-- statements can see whether the id is taken. There is only one writer.
insert into perdure.deadlines (at, id)
select ?8 + ?11, ?1
where ?11 is not null and not exists (select 1 from perdure.instances where id = ?1)
;
insert into perdure.partition_heads (key, head, tail)
select ?12, ?1, 0
where ?12 is not null and not exists (select 1 from perdure.instances where id = ?1)
on conflict (key) do update set tail = tail + 1
;
insert into perdure.partition_waiting (key, seq, id)
select h.key, h.tail, ?1
from perdure.partition_heads h
where h.key = ?12 and h.head <> ?1 and not exists (select 1 from perdure.instances where id = ?1)
;
insert into perdure.ready (queue, priority, due_at, id)
select ?6, ?7, coalesce(?9, ?8 + ?10), ?1
where not exists (select 1 from perdure.instances where id = ?1)
  and not exists (select 1 from perdure.partition_heads h where h.key = ?12 and h.head <> ?1)
;
insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, deadline_at, created_at, partition_key, trace)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?9, ?8 + ?10), ?8 + ?11, ?8, ?12, ?13
where true
on conflict (id) do nothing

-- name: InstanceTrace
-- Separate from the start, which is faster without it: few instances are traced.
update perdure.instances as i
set trace = traced.value->>1
from jsonb_each(?1) traced
where i.id = traced.value->>0

-- name: UniqueEnter
insert into perdure.uniques (name, key, id)
select value->>0, value->>1, value->>2
from jsonb_each(?1)
where true
on conflict (name, key) do nothing

-- name: UniqueOwners
select name, key, id
from perdure.uniques
where (name, key) in (select value->>0, value->>1 from jsonb_each(?1))

-- name: InstanceInsert
-- The general path, first of three: instances that own their unique key, or have
-- none.
insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, deadline_at, created_at,
  partition_key, unique_name, unique_key, unique_scope)
select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9,
  coalesce(value->>10, ?2 + (value->>11)), ?2 + (value->>12), ?2, value->>13, value->>14, value->>15, value->>16
from jsonb_each(?1)
where value->>15 is null or exists (
  select 1
  from perdure.uniques u
  where u.name = value->>14 and u.key = value->>15 and u.id = value->>0
)
;
insert into perdure.deadlines (at, id)
select i.deadline_at, i.id
from jsonb_each(?1)
join perdure.instances i on i.id = value->>0
where i.deadline_at is not null

-- name: PartitionEnter
-- Second: every partition key.
insert into perdure.partition_heads (key, head, tail)
select i.partition_key, (
    select f.value->>0
    from jsonb_each(?1) f
    join perdure.instances x on x.id = f.value->>0
    where x.partition_key = i.partition_key
    order by f.key
    limit 1
  ), count(*) - 1
from jsonb_each(?1) new
join perdure.instances i on i.id = new.value->>0
where i.partition_key is not null
group by i.partition_key
on conflict (key) do update set tail = tail + excluded.tail + 1

-- name: PartitionQueue
-- Third: instances that are not the head of their partition wait for it.
insert into perdure.partition_waiting (key, seq, id)
select h.key, h.tail - mine.k + mine.r, mine.id
from (
  select i.id, i.partition_key, row_number() over (partition by i.partition_key order by new.key) as r,
    count(*) over (partition by i.partition_key) as k
  from jsonb_each(?1) new
  join perdure.instances i on i.id = new.value->>0
  where i.partition_key is not null
) mine
join perdure.partition_heads h on h.key = mine.partition_key
where h.head <> mine.id

-- name: InstanceReady
-- Last: instances that may run.
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from jsonb_each(?1) new
join perdure.instances i on i.id = new.value->>0
left join perdure.partition_heads h on h.key = i.partition_key
where i.partition_key is null or h.head = i.id

-- name: InstanceClaim
-- Claims due rows of one queue under one lease: the most urgent first, then the
-- oldest. Suspects are claimed by InstanceSuspectClaim.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select id
  from (
    select * from (select id, priority, due_at from perdure.ready w where queue = ?1 and suspect = ?6 and priority = -1 and due_at <= ?2 and not {paused lane ?1 ?2}{openable Instance w.id} order by due_at, id limit ?3)
    union all
    select * from (select id, priority, due_at from perdure.ready w where queue = ?1 and suspect = ?6 and priority = 0 and due_at <= ?2 and not {paused lane ?1 ?2}{openable Instance w.id} order by due_at, id limit ?3)
    union all
    select * from (select id, priority, due_at from perdure.ready w where queue = ?1 and suspect = ?6 and priority = 1 and due_at <= ?2 and not {paused lane ?1 ?2}{openable Instance w.id} order by due_at, id limit ?3)
  )
  order by priority, due_at, id
  limit ?3
)
having count(*) > 0
;
delete from perdure.ready
where (queue, suspect, priority, due_at, id) in (
  select i.queue, ?6, i.priority, i.due_at, i.id
  from perdure.leases l, json_each(l.ids) held
  join perdure.instances i on i.id = held.value
  where l.token = ?4
)
;
select i.id, i.fsm, i.version, i.step, i.state, i.attempt, min(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace, i.awaited, i.rerun, i.wait, i.cancel_reason,
  {paused fsm i.fsm ?2}
from perdure.leases l, json_each(l.ids) held
join perdure.instances i on i.id = held.value
where l.token = ?4

-- name: InstanceSuspectList
-- Returns the due suspects that may run, in the order in which they run. Suspects
-- with a large batch limit come first: they are the least suspicious.
select r.id, coalesce(i.batch_limit, 1)
from perdure.ready r
join perdure.instances i on i.id = r.id
where r.queue = ?1 and r.suspect = 1 and r.due_at <= ?2 and max(coalesce(i.batch_limit, 1), 1) >= ?3 and not {paused lane ?1 ?2}{openable Instance r.id}
order by coalesce(i.batch_limit, 1) desc, r.priority, r.due_at, r.id
limit ?4

-- name: InstanceSuspectClaim
-- InstanceClaim for chosen suspects.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select id
  from perdure.ready
  where queue = ?1 and suspect = 1 and due_at <= ?2 and id in (select value->>0 from jsonb_each(?8))
  limit ?3
)
having count(*) > 0
;
{rest}
