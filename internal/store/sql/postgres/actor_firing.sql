-- Timers that a process is about to fire, on PostgreSQL. While the process is alive,
-- its record is locked by the transaction that fires the timers.

-- name: TimerClaim
-- The table of timers that other processes fire is built only if they fire some: the
-- planner assumes that it is large.
with due as (
  select d.actor_type, d.actor_id
  from unnest($2::text[]) as known (type)
  cross join lateral (
    select al.actor_type, al.actor_id, al.due_at
    from perdure.timers al
    join perdure.actors a on a.type = al.actor_type and a.id = al.actor_id
    where al.status = 'pending' and al.batch_limit is null and al.actor_type = known.type and al.due_at <= coalesce($1::timestamptz, now()){openable Actor al}
      and (not exists (select 1 from perdure.firing f where f.worker <> $5) or (al.actor_type, al.actor_id) not in (
        select t.value ->> 0, t.value ->> 1
        from perdure.firing f
        cross join lateral json_array_elements(f.timers) t
        where f.worker <> $5
      ))
    order by al.due_at
    limit $3
    for no key update of a skip locked
  ) d
  order by d.due_at
  limit $3
)
insert into perdure.firing (token, worker, suspect, claimed_at, expires_at, timers)
select $4, $5, false, coalesce($1::timestamptz, now()), coalesce($1::timestamptz, now()) + $6::bigint * interval '1 microsecond', json_agg(json_build_array(actor_type, actor_id))
from (select distinct actor_type, actor_id from due) actors
having count(*) > 0
returning timers::text, claimed_at

-- name: TimerSuspectDue
-- The status is compared so that the index of all pending timers cannot be used: the
-- planner assumes that most of them are suspects.
select 1
from perdure.timers
where batch_limit is not null and status || '' = 'pending' and due_at <= coalesce(?::timestamptz, now())
limit 1

-- name: TimerSuspectList
-- Suspects with a large batch limit come first: they are the least suspicious.
select al.actor_type, al.actor_id, al.alarm_id, al.batch_limit
from perdure.timers al
where al.batch_limit is not null and al.status || '' = 'pending' and al.due_at <= coalesce($1::timestamptz, now())
  and al.actor_type = any($2::text[]) and greatest(al.batch_limit, 1) >= $5::integer{openable Actor al}
  and (al.actor_type, al.actor_id) not in (
    select t.value ->> 0, t.value ->> 1
    from perdure.firing f
    cross join lateral json_array_elements(f.timers) t
    where f.worker <> $4
  )
order by al.batch_limit desc, al.due_at
limit $3
for update of al skip locked

-- name: FiringInsert
insert into perdure.firing (token, worker, suspect, claimed_at, expires_at, timers)
values ($1, $2, $3, coalesce($4::timestamptz, now()), coalesce($4::timestamptz, now()) + $5::bigint * interval '1 microsecond', $6::json)

-- name: FiringDelete
delete from perdure.firing
where token = ?

-- name: FiringExpired
select token, worker, suspect, claimed_at, timers::text
from perdure.firing
where expires_at <= coalesce(?::timestamptz, now())
order by expires_at
limit ?
for update skip locked

-- name: TimerLost
-- If only the actor was recorded, returns its timers that were due at that time.
select al.actor_type, al.actor_id, al.alarm_id, al.crashes, coalesce(al.batch_limit, 1)
from unnest(?::text[], ?::text[], ?::text[]) as lost (type, id, alarm_id)
join perdure.timers al on al.actor_type = lost.type and al.actor_id = lost.id
  and (al.alarm_id = lost.alarm_id or lost.alarm_id = '' and al.batch_limit is null and coalesce(al.occurs_at, al.due_at) <= ?::timestamptz)
where al.status = 'pending'

-- name: TimerReturn
-- The original time of a timer does not change.
update perdure.timers al
set crashes = o.crashes, batch_limit = o.batch_limit, error = o.error,
  status = case when o.error is null then al.status else 'quarantined' end,
  occurs_at = case when o.delay > 0 then coalesce(al.occurs_at, al.due_at) else al.occurs_at end,
  due_at = case when o.delay > 0 then t.now + o.delay * interval '1 microsecond' else al.due_at end
from unnest(?::text[], ?::text[], ?::text[], ?::integer[], ?::integer[], ?::bigint[], ?::text[]) as o (type, id, alarm_id, crashes, batch_limit, delay, error),
  (select coalesce(?::timestamptz, now()) as now) t
where al.actor_type = o.type and al.actor_id = o.id and al.alarm_id = o.alarm_id

-- name: ActorLockFree
-- Omits the snapshots that the caller has.
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, coalesce(?::timestamptz, now()), a.reason,
  case when a.snapshot_sequence <> wanted.has then a.snapshot_sequence end, case when a.snapshot_sequence <> wanted.has then a.snapshot end, a.checksum
from unnest(?::text[], ?::text[], ?::bigint[]) as wanted (type, id, has)
join perdure.actors a on a.type = wanted.type and a.id = wanted.id
order by a.type, a.id
for no key update of a skip locked
