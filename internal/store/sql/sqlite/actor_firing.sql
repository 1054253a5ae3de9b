-- Timers that a process is about to fire, on SQLite. The transaction that fires them
-- is the only writer, so no other process sees the record of a living process expire.

-- name: TimerClaim
insert into perdure.firing (token, worker, suspect, claimed_at, expires_at, timers)
select ?4, ?5, 0, ?1, ?1 + ?6, json_group_array(json_array(actor_type, actor_id))
from (
  select d.actor_type, d.actor_id, min(d.due_at) as due_at
  from jsonb_each(?2) known
  cross join perdure.timers d
  where d.rowid in (
    select rowid
    from perdure.timers w
    where status = 'pending' and batch_limit is null and actor_type = known.value->>0 and due_at <= ?1{openable Actor w}
      and (actor_type, actor_id) not in (
        select t.value->>0, t.value->>1
        from perdure.firing f, json_each(f.timers) t
        where f.worker <> ?5
      )
    order by due_at
    limit ?3
  )
  group by d.actor_type, d.actor_id
  order by 3
  limit ?3
)
having count(*) > 0
returning timers, claimed_at

-- name: TimerSuspectDue
select 1
from perdure.timers
where batch_limit is not null and status = 'pending' and due_at <= ?1
limit 1

-- name: TimerSuspectList
-- Suspects with a large batch limit come first: they are the least suspicious.
select actor_type, actor_id, alarm_id, batch_limit
from perdure.timers w
where batch_limit is not null and status = 'pending' and due_at <= ?1
  and actor_type in (select value->>0 from jsonb_each(?2)) and max(batch_limit, 1) >= ?5{openable Actor w}
  and (actor_type, actor_id) not in (
    select t.value->>0, t.value->>1
    from perdure.firing f, json_each(f.timers) t
    where f.worker <> ?4
  )
order by batch_limit desc, due_at
limit ?3

-- name: FiringInsert
insert into perdure.firing (token, worker, suspect, claimed_at, expires_at, timers)
values (?1, ?2, ?3, ?4, ?4 + ?5, ?6)

-- name: FiringDelete
delete from perdure.firing
where token = ?1

-- name: FiringExpired
select token, worker, suspect, claimed_at, timers
from perdure.firing
where expires_at <= ?1
order by expires_at
limit ?2

-- name: TimerLost
-- If only the actor was recorded, returns its timers that were due at that time.
select al.actor_type, al.actor_id, al.alarm_id, al.crashes, coalesce(al.batch_limit, 1)
from jsonb_each(?1) lost
cross join perdure.timers al on al.actor_type = lost.value->>0 and al.actor_id = lost.value->>1
  and (al.alarm_id = lost.value->>2 or lost.value->>2 = '' and al.batch_limit is null and coalesce(al.occurs_at, al.due_at) <= ?2)
where al.status = 'pending'

-- name: TimerReturn
-- The original time of a timer does not change.
update perdure.timers
set crashes = o.value->>3, batch_limit = o.value->>4, error = o.value->>6,
  status = case when o.value->>6 is null then status else 'quarantined' end,
  occurs_at = case when o.value->>5 > 0 then coalesce(occurs_at, due_at) else occurs_at end,
  due_at = case when o.value->>5 > 0 then ?2 + (o.value->>5) else due_at end
from jsonb_each(?1) o
where perdure.timers.actor_type = o.value->>0 and perdure.timers.actor_id = o.value->>1 and perdure.timers.alarm_id = o.value->>2

-- name: ActorLockFree
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, ?1, a.reason,
  case when a.snapshot_sequence <> wanted.value->>2 then a.snapshot_sequence end, case when a.snapshot_sequence <> wanted.value->>2 then a.snapshot end, a.checksum
from jsonb_each(?2) wanted
cross join perdure.actors a on a.type = wanted.value->>0 and a.id = wanted.value->>1
order by a.type, a.id
