-- The floors of lanes and of leases, on PostgreSQL. See floor.go. The planner knows nothing of
-- dead rows, so each look is written such that only the intended index can serve it: by the
-- collation of the queue, by expressions in place of columns, and by its order.

-- name: Floor.Level
-- The newest floor of each lane and priority. Without one, looks begin at the start of the
-- index. asked has the lanes.
level as materialized (
  select lane.name as queue, p.priority, f.seq, f.made_at, f.empty, f.seen_to, f.open, f.pin_at, f.pin_id,
    coalesce(f.at, '-infinity') as at, coalesce(f.id, '00000000-0000-0000-0000-000000000000') as id
  from asked, unnest(asked.lanes) as lane (name)
  cross join (values {levels}) as p (priority)
  left join lateral (
    select *
    from perdure.floors n
    where n.source = '{source}' and n.queue = lane.name and n.priority = p.priority
    order by n.seq desc
    limit 1
  ) f on f.server = pg_postmaster_start_time()
)

-- name: Floor.Below
-- The rows of a level l below its floor: those that have arrived since it was raised, and pins.
select r.at, r.id
from (
  select w.{at}, w.{id}
  from perdure.{source} w
  where {arrived} and w.arrived >= l.seen_to and w.arrived < asked.seen_to and (w.{at} + interval '0', w.{id}) < (l.at, l.id){openable}
  order by w.arrived
) r (at, id)
union all
select r.at, r.id
from unnest(l.open) as o (xid)
cross join lateral (
  select w.{at}, w.{id}
  from perdure.{source} w
  where {arrived} and w.arrived >= o.xid and w.arrived <= o.xid and (w.{at} + interval '0', w.{id}) < (l.at, l.id){openable}
  order by w.arrived
) r (at, id)
union all
select r.at, r.id
from unnest(l.pin_at, l.pin_id) as pin (at, id)
cross join lateral (
  select w.{at}, w.{id}
  from perdure.{source} w
  where {lane} and w.{at} >= pin.at and w.{at} <= pin.at and w.{id} = pin.id{openable}
  order by w.{at}, w.{id}
) r (at, id)

-- name: Floor.Asked
-- What a statement that raises floors asks with: the lanes, the time and the snapshot.
asked as materialized (
  select {lanes} as lanes, coalesce($2::timestamptz, now()) as now, pg_snapshot_xmax(s.snapshot) as seen_to, array(select pg_snapshot_xip(s.snapshot)) as open
  from (select pg_current_snapshot() as snapshot) s
)

-- name: Floor.Raise
-- Raises the floors of the asked lanes to their first rows. What has arrived below them becomes
-- pins. More than 1,000 pins are too many: the floor is lowered to the first of them. If there is
-- no row, the floor is the present time, and only a change or ten seconds are a reason to write
-- it. raised has the floors of all levels that have rows.
below as materialized (
  select distinct l.queue, l.priority, r.at, r.id
  from asked
  cross join level l
  cross join lateral (
{below {source}}
  ) r
  where l.seq is not null
), raised as (
  insert into perdure.floors (source, queue, priority, empty, at, id, seen_to, open, pin_at, pin_id)
  select '{source}', l.queue, l.priority, f.id is null and b.n = 0,
    case when b.n > 1000 then b.first when f.id is not null then f.at else greatest(l.at, asked.now) end,
    case when b.n > 1000 then '00000000-0000-0000-0000-000000000000' when f.id is not null then f.id when l.at > asked.now then l.id else '00000000-0000-0000-0000-000000000000' end,
    asked.seen_to, asked.open || pg_current_xact_id(),
    case when b.n between 1 and 1000 then b.all_at else '{}' end, case when b.n between 1 and 1000 then b.all_id else '{}' end
  from asked
  cross join level l
  left join lateral (
    select w.{at}, w.{id}
    from perdure.{source} w
    where {lane} and (w.{at}, w.{id}) >= (l.at, l.id){due}
    order by w.{at}, w.{id}
    limit 1
  ) f (at, id) on true
  cross join lateral (
    select count(*) as n, min(o.at) as first, array_agg(o.at order by o.at, o.id) as all_at, array_agg(o.id order by o.at, o.id) as all_id
    from below o
    where o.queue = l.queue and o.priority = l.priority
  ) b
  where f.id is not null or b.n > 0 or not l.empty or l.made_at < clock_timestamp() - interval '10 seconds'
  returning queue, priority, empty, at, id, pin_at, pin_id
), replaced as (
  delete from perdure.floors
  where ctid = any(array(
    select o.ctid
    from raised r
    join level l on l.queue = r.queue and l.priority = r.priority
    cross join lateral (
      select n.ctid
      from perdure.floors n
      where n.source = '{source}' and n.queue = l.queue and n.priority = l.priority and n.seq > l.seq - 64 and n.seq <= l.seq
      for no key update skip locked
    ) o
  ))
)

-- name: Floor.First
-- The times of the first row at the floor of a level l, and of all rows below it.
select f.at
from (
  select w.{at}
  from perdure.{source} w
  where {lane} and (w.{at}, w.{id}) >= (l.at, l.id){openable}
  order by w.{at}, w.{id}
  limit 1
) f (at)
union all
select b.at
from (
{below {source}}
) b
