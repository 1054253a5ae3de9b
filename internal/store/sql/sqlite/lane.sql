-- Lanes of queues, on SQLite: instances of a name that has too many slots wait in a lane of
-- their own. See lane.go. now is always passed.

-- name: InstanceLanes
-- Returns the lanes of a queue that have instances, with the microseconds until the first one
-- is due.
with recursive lane (queue) as (
  select min(r.queue) from perdure.ready r where r.queue > ?2 || char(31) and r.queue < ?2 || char(32)
  union all
  select (select min(r.queue) from perdure.ready r where r.queue > lane.queue and r.queue < ?2 || char(32))
  from lane
  where lane.queue is not null
)
select lane.queue, min(max(min(head.due_at), -62135510400000000), 253402214400000000) - ?1
from (select queue from lane where queue is not null limit ?3) lane, (select -1 as priority union all select 0 union all select 1) level
join perdure.ready head on head.rowid in (
  select w.rowid
  from perdure.ready w
  where w.queue = lane.queue and w.suspect = 0 and w.priority = level.priority
  order by w.due_at, w.id
  limit 1
)
where not {paused lane lane.queue ?1}
group by lane.queue

-- name: InstanceLaneClaim
-- InstanceClaim for lanes of the queue.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select due.id
  from jsonb_each(?8) lane, (select -1 as priority union all select 0 union all select 1) level
  join perdure.ready due on due.rowid in (
    select w.rowid
    from perdure.ready w
    where w.queue = lane.value->>0 and w.suspect = ?6 and w.priority = level.priority and w.due_at <= ?2{openable Instance w.id}
    order by w.due_at, w.id
    limit ?3
  )
  where not {paused lane lane.value->>0 ?2}
  order by due.priority, due.due_at, due.id
  limit ?3
)
having count(*) > 0
;
{rest}

-- name: InstanceMove
-- Moves claimed instances to lanes.
update perdure.instances
set queue = o.value->>1
from jsonb_each(?1) o
where perdure.instances.id = o.value->>0

-- name: InstanceUnshare
-- Moves instances back to their queue.
update perdure.instances
set queue = substr(queue, 1, instr(queue, char(31) || '~') - 1)
where id in (select value->>0 from jsonb_each(?1)) and instr(queue, char(31) || '~') > 0
