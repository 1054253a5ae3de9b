-- Lanes of queues, on PostgreSQL: instances of a name that has too many slots wait in a lane of
-- their own. See lane.go. Tests pass the time as now; otherwise now is null and the server's
-- clock decides.

-- name: InstanceLanes
-- Returns the lanes of a queue that have instances, with the microseconds until the first one
-- is due. The lanes follow the queue in the order of the collation "C".
with recursive lane (queue) as (
  (
    select r.queue
    from perdure.ready r
    where r.queue collate "C" > $2::text || chr(31) and r.queue collate "C" < $2::text || chr(32)
    order by r.queue collate "C", r.arrived
    limit 1
  )
  union all
  select n.queue
  from lane
  cross join lateral (
    select r.queue
    from perdure.ready r
    where r.queue collate "C" > lane.queue and r.queue collate "C" < $2::text || chr(32)
    order by r.queue collate "C", r.arrived
    limit 1
  ) n
)
select lane.queue, (extract(epoch from least(greatest(min(head.due_at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from (select queue from lane limit $3) lane
cross join (values (-1), (0), (1)) as level (priority)
cross join lateral (
  select w.due_at
  from perdure.ready w
  where w.queue = lane.queue and w.suspect = false and w.priority = level.priority and not {paused lane lane.queue $1}
  order by w.due_at, w.id
  limit 1
) head
group by lane.queue

-- name: InstanceLaneClaim
-- InstanceClaim for lanes of the queue.
with {raise ready $8::text[]}, due as ({rest}

-- name: InstanceMove
-- Moves claimed instances to lanes.
update perdure.instances i
set queue = o.lane
from unnest(?::uuid[], ?::text[]) as o (id, lane)
where i.id = o.id

-- name: InstanceUnshare
-- Moves instances back to their queue.
update perdure.instances i
set queue = split_part(i.queue, chr(31) || '~', 1)
where i.id = any(?::uuid[]) and strpos(i.queue, chr(31) || '~') > 0
