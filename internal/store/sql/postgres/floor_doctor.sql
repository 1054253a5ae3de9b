-- The invariants of floors, on PostgreSQL.

-- name: FloorDoctor
-- No row lies below the floor of its lane, unless the floor has a pin for it or it has arrived
-- since the floor was raised.
select w.id::text, 'is due in ' || replace(l.queue, chr(9), '/') || ' below the floor, so claims do not read it'
from (
  select distinct on (f.queue, f.priority) f.*
  from perdure.floors f
  where f.source = 'ready'
  order by f.queue, f.priority, f.seq desc
) l
join perdure.ready w on w.queue = l.queue and w.suspect = false and w.priority = l.priority and (w.due_at, w.id) < (l.at, l.id)
where l.server = pg_postmaster_start_time() and w.arrived < l.seen_to and not w.arrived = any(l.open)
  and not exists (select 1 from unnest(l.pin_at, l.pin_id) as pin (at, id) where pin.at = w.due_at and pin.id = w.id)
limit 1000
