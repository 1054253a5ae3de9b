-- Starting instances, on PostgreSQL. Tests pass the time as now; otherwise now is
-- null and the server's clock decides. Sets are passed as arrays.

-- name: InstanceStart
-- The fast path: no unique key, no partition.
with started as (
  insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, deadline_at, created_at)
  select id, fsm, version, step, state::json, queue, priority, parent, fanout, ordinal,
    coalesce(at, t.now + delay * interval '1 microsecond'), t.now + deadline * interval '1 microsecond', t.now
  from unnest(?::uuid[], ?::text[], ?::integer[], ?::text[], ?::text[], ?::text[], ?::smallint[], ?::uuid[], ?::integer[], ?::integer[],
    ?::timestamptz[], ?::bigint[], ?::bigint[])
    as new (id, fsm, version, step, state, queue, priority, parent, fanout, ordinal, at, delay, deadline),
    (select coalesce(?::timestamptz, now()) as now) t
  returning queue, priority, due_at, id, deadline_at
), dead as (
  insert into perdure.deadlines (at, id)
  select deadline_at, id
  from started
  where deadline_at is not null
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from started

-- name: InstanceStartAlike
-- The fastest path: instances that are due now and differ only in their states.
with new as (
  select id, state::json
  from unnest($6::uuid[], $7::text[]) as given (id, state)
), started as (
  insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at)
  select id, $1, $2, $3, state, $4, $5, t.now, t.now
  from new, (select coalesce($8::timestamptz, now()) as now) t
)
insert into perdure.ready (queue, priority, due_at, id)
select $4, $5, t.now, id
from new, (select coalesce($8::timestamptz, now()) as now) t

-- name: InstanceStartAbsent
-- One instance, unless its id is taken. A concurrent start of the same id waits, and then
-- returns no row.
with started as (
  insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, deadline_at, created_at, partition_key, trace)
  select $1::uuid, $2::text, $3::integer, $4::text, $5::json, $6::text, $7::smallint, coalesce($9::timestamptz, t.now + $10::bigint * interval '1 microsecond'),
    t.now + $11::bigint * interval '1 microsecond', t.now, $12::text, $13::text
  from (select coalesce($8::timestamptz, now()) as now) t
  on conflict (id) do nothing
  returning id, queue, priority, due_at, deadline_at, partition_key
), dead as (
  insert into perdure.deadlines (at, id)
  select deadline_at, id
  from started
  where deadline_at is not null
), entered as (
  insert into perdure.partition_heads as h (key, head, tail)
  select partition_key, id, 0
  from started
  where partition_key is not null
  on conflict (key) do update set tail = h.tail + 1
  returning h.key, h.head, h.tail
), queued as (
  insert into perdure.partition_waiting (key, seq, id)
  select e.key, e.tail, s.id
  from entered e
  join started s on s.id <> e.head
), ready as (
  insert into perdure.ready (queue, priority, due_at, id)
  select s.queue, s.priority, s.due_at, s.id
  from started s
  left join entered e on e.key = s.partition_key
  where s.partition_key is null or e.head = s.id
)
select id::text
from started

-- name: InstanceTrace
-- Separate from the start, which is faster without it: few instances are traced.
update perdure.instances i
set trace = traced.trace
from unnest(?::uuid[], ?::text[]) as traced (id, trace)
where i.id = traced.id

-- name: UniqueEnter
-- Inserts in the order of the keys, so that two batches cannot deadlock.
insert into perdure.uniques (name, key, id)
select name, key, id
from unnest(?::text[], ?::text[], ?::uuid[]) as new (name, key, id)
order by name, key
on conflict (name, key) do nothing

-- name: UniqueOwners
select name, key, id::text
from perdure.uniques
where (name, key) in (select name, key from unnest(?::text[], ?::text[]) as asked (name, key))

-- name: InstanceInsert
-- The general path, first of three: instances that own their unique key, or have
-- none.
with inserted as (
  insert into perdure.instances (id, fsm, version, step, state, queue, priority, parent_id, parent_fanout, ordinal, due_at, deadline_at, created_at,
    partition_key, unique_name, unique_key, unique_scope)
  select new.id, fsm, version, step, state::json, queue, priority, parent, fanout, ordinal,
    coalesce(at, t.now + delay * interval '1 microsecond'), t.now + deadline * interval '1 microsecond', t.now,
    partition_key, unique_name, unique_key, unique_scope
  from unnest(?::uuid[], ?::text[], ?::integer[], ?::text[], ?::text[], ?::text[], ?::smallint[], ?::uuid[], ?::integer[], ?::integer[],
    ?::timestamptz[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::smallint[])
    as new (id, fsm, version, step, state, queue, priority, parent, fanout, ordinal, at, delay, deadline, partition_key, unique_name, unique_key, unique_scope),
    (select coalesce(?::timestamptz, now()) as now) t
  where unique_key is null or exists (
    select 1
    from perdure.uniques u
    where u.name = new.unique_name and u.key = new.unique_key and u.id = new.id
  )
  returning id, deadline_at
)
insert into perdure.deadlines (at, id)
select deadline_at, id
from inserted
where deadline_at is not null

-- name: PartitionEnter
-- Second: every partition key in order. Its row is locked until commit, so the
-- order of the queue is the order of commits.
insert into perdure.partition_heads (key, head, tail)
select i.partition_key, (array_agg(i.id order by new.ord))[1], count(*) - 1
from unnest(?::uuid[]) with ordinality as new (id, ord)
join perdure.instances i on i.id = new.id
where i.partition_key is not null
group by i.partition_key
order by i.partition_key
on conflict (key) do update set tail = perdure.partition_heads.tail + excluded.tail + 1

-- name: PartitionQueue
-- Third: instances that are not the head of their partition wait for it.
insert into perdure.partition_waiting (key, seq, id)
select h.key, h.tail - mine.k + mine.r, mine.id
from (
  select i.id, i.partition_key, row_number() over (partition by i.partition_key order by new.ord) as r,
    count(*) over (partition by i.partition_key) as k
  from unnest(?::uuid[]) with ordinality as new (id, ord)
  join perdure.instances i on i.id = new.id
  where i.partition_key is not null
) mine
join perdure.partition_heads h on h.key = mine.partition_key
where h.head <> mine.id

-- name: InstanceReady
-- Last: instances that may run.
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from unnest(?::uuid[]) as new (id)
join perdure.instances i on i.id = new.id
left join perdure.partition_heads h on h.key = i.partition_key
where i.partition_key is null or h.head = i.id

-- name: InstanceClaim
-- Claims due rows of one queue under one lease: the most urgent first, then the
-- oldest. It raises the floors, and begins to look there. Suspects are claimed by InstanceSuspectClaim. The rows are deleted by
-- an array of their physical places (ctid). The planner turns a join into a scan of
-- the whole table once it knows the size of the table.
with {raise ready array[$1::text]}, due as (
  select r.ctid, r.id
  from raised l
  cross join lateral (
    select a.ctid, a.id, a.due_at
    from (
      select ctid, id, due_at
      from perdure.ready w
      where w.queue = l.queue and w.suspect = $6 and w.priority = l.priority and (w.due_at, w.id) >= (l.at, l.id) and w.due_at <= coalesce($2::timestamptz, now()){openable Instance w.id}
      order by w.due_at, w.id
      limit $3
      for update skip locked
    ) a
    union all
    select p.ctid, p.id, p.due_at
    from (
      select w.ctid, w.id, w.due_at
      from unnest(l.pin_at, l.pin_id) as pin (at, id)
      cross join lateral (
        select w.ctid, w.id, w.due_at
        from perdure.ready w
        where w.queue = l.queue and w.suspect = $6 and w.priority = l.priority and w.due_at >= pin.at and w.due_at <= pin.at and w.id = pin.id
          and w.due_at <= coalesce($2::timestamptz, now()){openable Instance w.id}
        order by w.due_at, w.id
        for update skip locked
      ) w
      limit $3
    ) p
  ) r
  where not l.empty and not {paused lane l.queue $2}
  order by l.priority, r.due_at, r.id
  limit $3
), taken as (
  delete from perdure.ready r
  where r.ctid = any(array(select ctid from due))
  returning r.id
), lease as (
  insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
  select $4::uuid, $5, $1, $6, coalesce($2::timestamptz, now()), coalesce($2::timestamptz, now()) + $7::bigint * interval '1 microsecond', array_agg(id)
  from taken
  having count(*) > 0
)
select i.id::text, i.fsm, i.version, i.step, i.state::text, i.attempt, least(i.failures, i.attempt), i.crashes, i.awaits, i.keeps, i.seen, i.timed_out, i.fanout, i.dropped,
  i.parent_id::text, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at, i.created_at, i.priority, i.due_at, i.trace, i.awaited, i.rerun, i.wait, i.cancel_reason,
  {paused fsm i.fsm $2}
from perdure.instances i
where i.id in (select id from taken)

-- name: InstanceSuspectList
-- Returns the due suspects that may run, in the order in which they run. Suspects
-- with a large batch limit come first: they are the least suspicious.
select r.id::text, coalesce(i.batch_limit, 1)
from perdure.ready r
join perdure.instances i on i.id = r.id
where r.queue = $1 and r.suspect and r.due_at <= coalesce($2::timestamptz, now()) and greatest(coalesce(i.batch_limit, 1), 1) >= $3::integer{openable Instance r.id} and not {paused lane r.queue $2}
order by coalesce(i.batch_limit, 1) desc, r.priority, r.due_at, r.id
limit $4
for update of r skip locked

-- name: InstanceSuspectClaim
-- InstanceClaim for chosen suspects, which are locked.
with due as (
  select ctid, id
  from perdure.ready
  where queue = $1 and suspect and due_at <= coalesce($2::timestamptz, now()) and id = any($8::uuid[])
  limit $3
), taken as ({rest}
