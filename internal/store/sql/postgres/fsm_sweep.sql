-- Work that becomes due outside the ready rows, on PostgreSQL. Every statement is
-- ordered, has a limit and skips rows that other transactions have locked.

-- name: InstanceHeld
-- Returns the instances of a process's leases that are in no other place: the leases
-- hold them. An instance that is not the head of its partition is in the partition's
-- queue.
select l.token::text, l.alone, i.id::text, i.crashes, coalesce(i.batch_limit, 1), i.id::text, i.fsm
from perdure.leases l, unnest(l.ids) as held (id)
join perdure.instances i on i.id = held.id
where l.worker = ?
  and not exists (select 1 from perdure.finished f where f.id = i.id)
  and not exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = false and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
  and not exists (select 1 from perdure.ready r where r.queue = i.queue and r.suspect = true and r.priority = i.priority and r.due_at = i.due_at and r.id = i.id)
  and not exists (select 1 from perdure.waiting w where w.id = i.id)
  and not exists (select 1 from perdure.barriers b where b.parent_id = i.id)
  and not exists (select 1 from perdure.unrouted u where u.queue = i.queue and u.fsm = i.fsm and u.version = i.version and u.step in ('', i.step) and u.id = i.id)
  and not exists (select 1 from perdure.partition_heads h where h.key = i.partition_key and h.head <> i.id)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and i.id = any(newer.ids))

-- name: InstanceReturn
-- Returns the claims of a crashed process to the queue. Suspects have a batch limit.
with due as (
  update perdure.instances i
  set crashes = o.crashes, batch_limit = o.batch_limit, error = ?, due_at = coalesce(?::timestamptz, now()) + o.delay * interval '1 microsecond'
  from unnest(?::uuid[], ?::integer[], ?::bigint[], ?::integer[]) as o (id, crashes, delay, batch_limit)
  where i.id = o.id
  returning i.queue, o.batch_limit is not null as suspect, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, suspect, priority, due_at, id
from due
returning queue

-- name: WaitingExpired
-- Locks the instances first, as the delivery of a signal does.
select i.id::text
from perdure.waiting w
join perdure.instances i on i.id = w.id
where w.deadline_at <= coalesce(?::timestamptz, now())
order by w.deadline_at
limit ?
for no key update of i skip locked

-- name: WaitingTimeout
with woken as (
  delete from perdure.waiting w
  where w.id = any(?::uuid[]) and w.deadline_at <= coalesce(?::timestamptz, now())
  returning w.id
), due as (
  update perdure.instances i
  set due_at = coalesce(?::timestamptz, now()), timed_out = true
  from woken
  where i.id = woken.id
  returning i.queue, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from due
returning queue

-- name: BarrierTimeout
-- A parent that is locked, for example by a unit that sends it a signal, is left for
-- later.
with gone as (
  delete from perdure.barriers b
  where b.parent_id in (
    select x.parent_id
    from perdure.barriers x
    join perdure.instances i on i.id = x.parent_id
    where x.deadline_at <= coalesce($1::timestamptz, now())
    order by x.deadline_at
    limit $2
    for update of x skip locked
    for no key update of i skip locked
  )
  returning b.parent_id, b.fanout, b.pending, b.cancel_rest
), rest as (
  insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
  select parent_id, fanout, fanout, 'cancel', parent_id, 'the wait for the children has timed out', coalesce($1::timestamptz, now()), coalesce($1::timestamptz, now())
  from gone
  where cancel_rest and pending > 0
  on conflict (parent_id, kind, last_fanout) do nothing
), due as (
  update perdure.instances i
  set due_at = coalesce($1::timestamptz, now()), timed_out = true
  from gone
  where i.id = gone.parent_id
  returning i.queue, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from due
returning queue

-- name: InstanceUnroute
-- The process that claimed the instance does not know the definition, or not this step
-- of it. The instance is parked until a process serves it.
insert into perdure.unrouted (queue, fsm, version, step, id)
select i.queue, i.fsm, i.version, case when o.known then i.step else '' end, i.id
from unnest(?::uuid[], ?::boolean[]) as o (id, known)
join perdure.instances i on i.id = o.id

-- name: InstanceReroute
with known as (
  delete from perdure.unrouted u
  where (u.queue, u.fsm, u.version, u.step, u.id) in (
    select x.queue, x.fsm, x.version, x.step, x.id
    from unnest($1::text[], $2::integer[], $3::text[]) as mine (fsm, version, step)
    cross join lateral (
      select p.queue, p.fsm, p.version, p.step, p.id
      from perdure.unrouted p
      join perdure.instances i on i.id = p.id
      where p.queue = $4 and p.fsm = mine.fsm and p.version = mine.version and p.step = mine.step
      order by p.id
      limit $5
      for update of p skip locked
      for no key update of i skip locked
    ) x
    where not {paused fsm mine.fsm $6}
    limit $5
  )
  returning u.id
), due as (
  update perdure.instances i
  set due_at = coalesce($6::timestamptz, now())
  from known
  where i.id = known.id
  returning i.queue, i.batch_limit is not null as suspect, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, suspect, priority, due_at, id
from due
returning queue

-- name: InstanceNextWake
-- Returns the microseconds until work of a queue is due. Looks begin at the floors.
with asked as materialized (
  select array[$2::text] as lanes, pg_snapshot_xmax(pg_current_snapshot()) as seen_to
), {floor ready}, {floor leases asked lease_level}
select (extract(epoch from least(greatest(min(at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from (
  select r.at
  from asked, level l
  cross join lateral (
{first ready Instance}
  ) r (at)
  where true and not {paused lane l.queue $1}
  union all
  select r.due_at
  from (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select due_at
    from perdure.ready w
    where $6::integer = 1 and not {paused lane $2::text $1} and queue = $2 and suspect = true and priority = level.priority{openable Instance w.id}
    order by due_at, id
    limit 1
  ) r
  union all
  (
    select r.due_at
    from perdure.ready r
    join perdure.instances i on i.id = r.id
    where $6::integer > 1 and r.queue = $2 and r.suspect and i.batch_limit >= $6::integer{openable Instance r.id} and not {paused lane r.queue $1}
    order by r.due_at
    limit 1
  )
  union all
  (
    select coalesce($1::timestamptz, now())
    from unnest($3::text[], $4::integer[], $5::text[]) as mine (fsm, version, step)
    cross join lateral (
      select 1
      from perdure.unrouted
      where queue = $2 and fsm = mine.fsm and version = mine.version and step = mine.step
      order by id
      limit 1
    ) u
    where not {paused fsm mine.fsm $1}
    limit 1
  )
  union all
  select r.at
  from asked, lease_level l
  cross join lateral (
{first leases}
  ) r (at)
  union all
  (select deadline_at from perdure.waiting where deadline_at is not null order by deadline_at limit 1)
  union all
  (select deadline_at from perdure.barriers where deadline_at is not null order by deadline_at limit 1)
  union all
  (select d.at from perdure.deadlines d order by d.at limit 1)
  union all
  (select e.due_at from perdure.tree_ends e order by e.due_at limit 1)
  union all
  select until_at from perdure.pauses where until_at > coalesce($1::timestamptz, now())
) wakes
having min(at) is not null

-- name: InstanceSuspectDue
select 1
from perdure.ready
where queue = ? and suspect and due_at <= coalesce(?::timestamptz, now())
limit 1

-- name: LeaseExpired
-- Locks expired leases. It raises the floor, and begins to look there.
with {raise leases array[$1::text]}
select l.token::text, l.worker
from (
  select r.token, r.worker, r.expires_at
  from raised l
  cross join lateral (
    select a.token, a.worker, a.expires_at
    from (
      select w.token, w.worker, w.expires_at
      from perdure.leases w
      where w.queue = l.queue and (w.expires_at, w.token) >= (l.at, l.id) and w.expires_at <= coalesce($2::timestamptz, now())
      order by w.expires_at, w.token
      limit $3
      for update skip locked
    ) a
    union all
    select p.token, p.worker, p.expires_at
    from (
      select w.token, w.worker, w.expires_at
      from unnest(l.pin_at, l.pin_id) as pin (at, id)
      cross join lateral (
        select w.token, w.worker, w.expires_at
        from perdure.leases w
        where w.queue = l.queue and w.expires_at >= pin.at and w.expires_at <= pin.at and w.token = pin.id and w.expires_at <= coalesce($2::timestamptz, now())
        order by w.expires_at, w.token
        for update skip locked
      ) w
      limit $3
    ) p
  ) r
) l
order by l.expires_at
limit $3
