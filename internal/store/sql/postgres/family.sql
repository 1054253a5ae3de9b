-- The lifecycle of items of one kind, on PostgreSQL: claim, lease, return. Each statement
-- exists once for every kind that has lanes (see family.go). {Kind}, {word} and {items}
-- are the names of the kind, and {piece X} is its statement X. Tests pass the time as now;
-- otherwise now is null and the server's clock decides. Sets are passed as arrays.

-- name: {Kind}Claim
-- Claims due rows of some lanes under one lease: the most urgent first, then the oldest.
-- It raises the floors, and begins to look there. Suspects are claimed by {Kind}SuspectClaim.
with {raise ready $8::text[]}, due as (
  select r.ctid, r.id
  from raised l
  cross join lateral (
    select a.ctid, a.id, a.due_at
    from (
      select ctid, id, due_at
      from perdure.ready w
      where w.queue = l.queue and w.suspect = $6 and w.priority = l.priority and (w.due_at, w.id) >= (l.at, l.id) and w.due_at <= coalesce($2::timestamptz, now()){openable {Kind} w.id}
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
          and w.due_at <= coalesce($2::timestamptz, now()){openable {Kind} w.id}
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
select {piece ClaimColumns}
from perdure.{items} h
where h.id in (select id from taken)
order by h.priority, h.due_at, h.id

-- name: {Kind}SuspectList
-- Returns the due suspects that may run, in the order in which they run. Suspects with a
-- large batch limit come first: they are the least suspicious.
select r.id::text, coalesce(h.batch_limit, 1)
from perdure.ready r
join perdure.{items} h on h.id = r.id
where r.queue = any($1::text[]) and r.suspect and r.due_at <= coalesce($2::timestamptz, now()) and greatest(coalesce(h.batch_limit, 1), 1) >= $3::integer{openable {Kind} r.id} and not {paused lane r.queue $2}
order by coalesce(h.batch_limit, 1) desc, r.priority, r.due_at, r.id
limit $4
for update of r skip locked

-- name: {Kind}SuspectClaim
-- {Kind}Claim for chosen suspects, which are locked.
with due as (
  select ctid, id
  from perdure.ready
  where queue = any($9::text[]) and suspect and due_at <= coalesce($2::timestamptz, now()) and id = any($8::uuid[])
  limit $3
), taken as ({rest}

-- name: {Kind}SuspectDue
select 1
from perdure.ready
where queue = any(?::text[]) and suspect and due_at <= coalesce(?::timestamptz, now())
limit 1

-- name: {Kind}Held
-- Returns the items of a process's leases that are in no other place: the leases hold
-- them.
select l.token::text, l.alone, h.id::text, h.crashes, coalesce(h.batch_limit, 1), {piece Public}, {piece Name}
from perdure.leases l, unnest(l.ids) as held (id)
join perdure.{items} h on h.id = held.id
where l.worker = ?
  and {piece Live}
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and h.id = any(newer.ids))

-- name: {Kind}TakeMany
select h.id::text
from perdure.{items} h
where h.id = any(?::uuid[])
order by h.id
for no key update of h skip locked

-- name: {Kind}Lock
-- Locks in order, so that two transactions cannot deadlock.
select h.id::text{piece LockColumns}
from perdure.{items} h
where h.id = any(?::uuid[])
order by h.id
for no key update of h

-- name: {Kind}Return
-- Returns the claims of a crashed process to their lanes. Suspects have a batch limit.
with due as (
  update perdure.{items} h
  set crashes = o.crashes, batch_limit = o.batch_limit, error = ?, last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where h.id = any(l.ids)), h.last_attempt_at),
    {piece Returned}due_at = greatest(h.due_at, t.now + o.delay * interval '1 microsecond')
  from (select coalesce(?::timestamptz, now()) as now) t, unnest(?::uuid[], ?::integer[], ?::bigint[], ?::integer[]) as o (id, crashes, delay, batch_limit)
  where h.id = o.id
  returning h.queue, o.batch_limit is not null as suspect, h.priority, h.due_at, h.id
)
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, suspect, priority, due_at, id
from due
returning queue

-- name: {Kind}Postpone
-- Postpones a claim that this process cannot run, with the reason.
update perdure.{items} h
set due_at = t.later, {piece Postponed}error = ?
from (select coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond' as later) t
where h.id = ?::uuid

-- name: {Kind}NextWake
-- Returns the microseconds until an item of these lanes is due, or a lease of the queue
-- expires. Looks begin at the floors.
with asked as materialized (
  select $3::text[] as lanes, pg_snapshot_xmax(pg_current_snapshot()) as seen_to
), {floor ready}, leased as materialized (
  select array[$2::text] as lanes, asked.seen_to
  from asked
), {floor leases leased lease_level}
select (extract(epoch from least(greatest(min(at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from (
  select r.at
  from asked, level l
  cross join lateral (
{first ready {Kind}}
  ) r (at)
  where true and not {paused lane l.queue $1}
  union all
  select r.due_at
  from unnest($3::text[]) as lane (name)
  cross join (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select due_at
    from perdure.ready w
    where $4::integer = 1 and not {paused lane lane.name $1} and queue = lane.name and suspect = true and priority = level.priority{openable {Kind} w.id}
    order by due_at, id
    limit 1
  ) r
  union all
  (
    select r.due_at
    from perdure.ready r
    join perdure.{items} h on h.id = r.id
    where $4::integer > 1 and r.queue = any($3::text[]) and r.suspect and h.batch_limit >= $4::integer{openable {Kind} r.id} and not {paused lane r.queue $1}
    order by r.due_at
    limit 1
  )
  union all
  select r.at
  from asked, lease_level l
  cross join lateral (
{first leases}
  ) r (at)
  union all
  select until_at from perdure.pauses where until_at > coalesce($1::timestamptz, now())
) wakes
having min(at) is not null

-- name: {Kind}Unready
delete from perdure.ready r
using perdure.{items} h
where h.id = ?::uuid and r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id

-- name: {Kind}Attempt
-- Records failed attempts. The leases are locked, so no other process records attempts of
-- these items.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select '{word}', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = '{word}' and a.id = o.id), 0) + 1,
  o.attempt, 'failed', o.error, ?, t.now - o.took * interval '1 microsecond', t.now
from unnest(?::text[], ?::text[], ?::integer[], ?::text[], ?::bigint[]) as o (id, step, attempt, error, took),
  (select coalesce(?::timestamptz, now()) as now) t

-- name: {Kind}AttemptCap
-- Deletes all attempts except the newest.
delete from perdure.attempts a
where a.kind = '{word}' and a.id = any(?::text[])
  and a.seq <= (select max(b.seq) - 50 from perdure.attempts b where b.kind = '{word}' and b.id = a.id)

-- name: Among
-- A condition: the column is one of a set of ids.
{of} = any({value}::uuid[])
