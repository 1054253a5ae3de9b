-- Durable hooks, on PostgreSQL. now is given by tests; otherwise it is null and the
-- server's clock decides. Sets are passed as arrays.

-- name: HookInsert
with new as (
  insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
  select ?::uuid, ?::text, ?::text, ?::text, ?::text, ?::json, ?::smallint, ?::json, ?::integer, ?::text, ?::text,
    t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now)
  from (select coalesce(?::timestamptz, now()) as at_now, coalesce(?::timestamptz, coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond') as at_due) t
  returning queue, priority, due_at, id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from new

-- name: HookClaim
-- Takes due rows of some lanes, the most urgent and then the oldest first, under one
-- lease. Suspects are claimed by HookSuspectClaim.
with due as (
  select r.ctid, r.id
  from unnest($8::text[]) as lane (name)
  cross join (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select ctid, id, due_at
    from perdure.ready w
    where queue = lane.name and suspect = $6 and priority = level.priority and due_at <= coalesce($2::timestamptz, now()){openable Hook w.id}
    order by due_at, id
    limit $3
    for update skip locked
  ) r
  order by level.priority, r.due_at, r.id
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
select h.id::text, coalesce(h.key, h.id::text), h.name, h.payload::text, h.priority, h.policy::text, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at
from perdure.hook_items h
where h.id in (select id from taken)
order by h.priority, h.due_at, h.id

-- name: HookSuspectList
-- Due suspects that may be run, in the order in which they are: large batches first, as
-- they are the least suspicious.
select r.id::text, coalesce(h.batch_limit, 1)
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where r.queue = any($1::text[]) and r.suspect and r.due_at <= coalesce($2::timestamptz, now()) and greatest(coalesce(h.batch_limit, 1), 1) >= $3::integer{openable Hook r.id}
order by coalesce(h.batch_limit, 1) desc, r.priority, r.due_at, r.id
limit $4
for update of r skip locked

-- name: HookSuspectClaim
-- HookClaim for suspects that were chosen and are locked.
with due as (
  select ctid, id
  from perdure.ready
  where queue = any($9::text[]) and suspect and due_at <= coalesce($2::timestamptz, now()) and id = any($8::uuid[])
  limit $3
), taken as ({rest}

-- name: HookSuspectDue
select 1
from perdure.ready
where queue = any(?::text[]) and suspect and due_at <= coalesce(?::timestamptz, now())
limit 1

-- name: HookHeld
-- The hooks of the leases of a process that are in no other place, and thus held by them.
select l.token::text, l.alone, h.id::text, h.crashes, coalesce(h.batch_limit, 1), coalesce(h.key, h.id::text), h.name
from perdure.leases l, unnest(l.ids) as held (id)
join perdure.hook_items h on h.id = held.id
where l.worker = ?
  and not exists (select 1 from perdure.hook_ends e where e.id = h.id)
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (false, true) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and h.id = any(newer.ids))

-- name: HookTakeMany
select h.id::text
from perdure.hook_items h
where h.id = any(?::uuid[])
order by h.id
for no key update of h skip locked

-- name: HookLock
-- In order, so that two transactions cannot deadlock.
select h.id::text
from perdure.hook_items h
where h.id = any(?::uuid[])
order by h.id
for no key update of h

-- name: HookReturn
-- A claim whose process crashed: back to its lane. Suspects have a batch limit.
with due as (
  update perdure.hook_items h
  set crashes = o.crashes, batch_limit = o.batch_limit, error = ?, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where h.id = any(l.ids)), h.last_attempt_at),
    next_attempt_at = case when o.delay > 0 then t.now + o.delay * interval '1 microsecond' end, due_at = t.now + o.delay * interval '1 microsecond'
  from (select coalesce(?::timestamptz, now()) as now) t, unnest(?::uuid[], ?::integer[], ?::bigint[], ?::integer[]) as o (id, crashes, delay, batch_limit)
  where h.id = o.id
  returning h.queue, o.batch_limit is not null as suspect, h.priority, h.due_at, h.id
)
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, suspect, priority, due_at, id
from due
returning queue

-- name: HookRelease
-- Back to its lane, at the due time of the row.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, batch_limit is not null, priority, due_at, id
from perdure.hook_items
where id = any(?::uuid[])

-- name: HookPostpone
-- A claim that cannot be run here: for later, with the reason.
update perdure.hook_items h
set due_at = t.later, next_attempt_at = t.later, error = ?
from (select coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond' as later) t
where h.id = ?::uuid

-- name: HookTried
-- Attempts that failed. The hooks are due again after a delay, unless that is null.
update perdure.hook_items h
set attempt = h.attempt + 1, batch_limit = null, error = o.error, last_attempt_at = t.now - o.took * interval '1 microsecond',
  next_attempt_at = t.now + o.delay * interval '1 microsecond', due_at = coalesce(t.now + o.delay * interval '1 microsecond', h.due_at)
from unnest(?::uuid[], ?::text[], ?::bigint[], ?::bigint[]) as o (id, error, took, delay), (select coalesce(?::timestamptz, now()) as now) t
where h.id = o.id

-- name: HookEnd
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select o.id, o.status, o.error, ?::text, o.created_at, t.now - o.took * interval '1 microsecond', t.now
from unnest(?::uuid[], ?::text[], ?::text[], ?::timestamptz[], ?::bigint[]) as o (id, status, error, created_at, took), (select coalesce(?::timestamptz, now()) as now) t

-- name: HookNextWake
-- Microseconds until something is due: a hook of these lanes, or an expired lease of the
-- queue.
select (extract(epoch from least(greatest(min(at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from (
  select r.due_at as at
  from unnest($3::text[]) as lane (name)
  cross join (values (false, -1), (false, 0), (false, 1), (true, -1), (true, 0), (true, 1)) as level (suspect, priority)
  cross join lateral (
    select due_at
    from perdure.ready w
    where queue = lane.name and suspect = level.suspect and priority = level.priority and (not suspect or $4::integer = 1){openable Hook w.id}
    order by due_at, id
    limit 1
  ) r
  union all
  (
    select r.due_at
    from perdure.ready r
    join perdure.hook_items h on h.id = r.id
    where $4::integer > 1 and r.queue = any($3::text[]) and r.suspect and h.batch_limit >= $4::integer{openable Hook r.id}
    order by r.due_at
    limit 1
  )
  union all
  (select expires_at from perdure.leases where queue = $2 order by expires_at limit 1)
) wakes
having min(at) is not null

-- name: HookFind
-- Locks a hook, by the id that its user knows.
select h.id::text, h.namespace
from perdure.hook_items h
where h.key = ? or h.key is null and h.id = ?::uuid
for no key update of h

-- name: HookGet
select h.id::text, coalesce(h.key, h.id::text), h.namespace, h.name, h.payload::text, coalesce(e.status, case when r.id is null then 'processing' else 'pending' end), h.priority, h.policy::text,
  h.max_attempts, h.attempt + case when e.status = 'completed' then 1 else 0 end, h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect in (false, true) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?::uuid

-- name: HookUnready
delete from perdure.ready r
using perdure.hook_items h
where h.id = ?::uuid and r.queue = h.queue and r.suspect in (false, true) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id

-- name: HookUnend
delete from perdure.hook_ends
where id = ?::uuid

-- name: HookRevive
-- A hook that starts over: due now, with all attempts before it.
update perdure.hook_items
set attempt = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = coalesce(?::timestamptz, now())
where id = ?::uuid

-- name: HookHasten
-- A hook that waits no longer.
update perdure.hook_items
set next_attempt_at = null, due_at = coalesce(?::timestamptz, now())
where id = ?::uuid

-- name: HookCancel
-- The end of a hook that is in no other place any more. A process that completes the hook
-- does not lock it: its end may be there, or be committed while this waits for it.
insert into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, coalesce(?::timestamptz, now())
from perdure.hook_items h
where h.id = ?::uuid
on conflict do nothing

-- name: HookQuarantine
-- The end of a hook that has crashed too many processes.
with lost as (
  update perdure.hook_items
  set crashes = crashes + 1, error = $1::text, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where hook_items.id = any(l.ids)), last_attempt_at)
  where id = $3::uuid
  returning id, created_at, last_attempt_at
)
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select id, 'quarantined', $1::text, created_at, last_attempt_at, coalesce($2::timestamptz, now())
from lost

-- name: HookTaken
-- A row whose id a user chooses for another hook.
select 1
from perdure.hook_items
where key is null and id = ?::uuid

-- name: HookDelete
with attempts as (
  delete from perdure.attempts
  where kind = 'hook' and id = any($1::text[])
), ends as (
  delete from perdure.hook_ends
  where id = any($1::uuid[])
)
delete from perdure.hook_items
where id = any($1::uuid[])

-- name: HookPurge
select id::text
from perdure.hook_ends
where status in ('completed', 'cancelled') and finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
order by finished_at
limit $3
for update skip locked

-- name: HookPurgeDead
select id::text
from perdure.hook_ends
where status in ('failed', 'quarantined') and finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
order by finished_at
limit $3
for update skip locked
