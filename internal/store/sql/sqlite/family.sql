-- The lifecycle of items of one kind, on SQLite: claim, lease, return. Each statement
-- exists once for every kind that has lanes (see family.go). {Kind}, {word} and {items}
-- are the names of the kind, and {piece X} is its statement X. now is always passed. A set
-- is passed as JSON, with an array for each row. A line with only a semicolon separates
-- the statements of one name.

-- name: {Kind}Claim
-- Claims due rows of some lanes under one lease: the most urgent first, then the oldest.
-- Suspects are claimed by {Kind}SuspectClaim.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select due.id
  from jsonb_each(?8) lane, (select -1 as priority union all select 0 union all select 1) level
  join perdure.ready due on due.rowid in (
    select w.rowid
    from perdure.ready w
    where w.queue = lane.value->>0 and w.suspect = ?6 and w.priority = level.priority and w.due_at <= ?2{openable {Kind} w.id}
    order by w.due_at, w.id
    limit ?3
  )
  where not {paused lane lane.value->>0 ?2}
  order by due.priority, due.due_at, due.id
  limit ?3
)
having count(*) > 0
;
delete from perdure.ready
where (queue, suspect, priority, due_at, id) in (
  select h.queue, ?6, h.priority, h.due_at, h.id
  from perdure.leases l, json_each(l.ids) held
  join perdure.{items} h on h.id = held.value
  where l.token = ?4
)
;
select {piece ClaimColumns}
from perdure.leases l, json_each(l.ids) held
join perdure.{items} h on h.id = held.value
where l.token = ?4
order by h.priority, h.due_at, h.id

-- name: {Kind}SuspectList
-- Returns the due suspects that may run, in the order in which they run. Suspects with a
-- large batch limit come first: they are the least suspicious.
select r.id, coalesce(h.batch_limit, 1)
from perdure.ready r
join perdure.{items} h on h.id = r.id
where r.queue in (select value->>0 from jsonb_each(?1)) and r.suspect = 1 and r.due_at <= ?2 and max(coalesce(h.batch_limit, 1), 1) >= ?3 and not {paused lane r.queue ?2}{openable {Kind} r.id}
order by coalesce(h.batch_limit, 1) desc, r.priority, r.due_at, r.id
limit ?4

-- name: {Kind}SuspectClaim
-- {Kind}Claim for chosen suspects.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, ?2, ?2 + ?7, json_group_array(id)
from (
  select id
  from perdure.ready
  where queue in (select value->>0 from jsonb_each(?9)) and suspect = 1 and due_at <= ?2 and id in (select value->>0 from jsonb_each(?8))
  limit ?3
)
having count(*) > 0
;
{rest}

-- name: {Kind}SuspectDue
select 1
from perdure.ready
where queue in (select value->>0 from jsonb_each(?1)) and suspect = 1 and due_at <= ?2
limit 1

-- name: {Kind}Held
-- Returns the items of a process's leases that are in no other place: the leases hold
-- them.
select l.token, l.alone, h.id, h.crashes, coalesce(h.batch_limit, 1), {piece Public}, {piece Name}
from perdure.leases l, json_each(l.ids) held
join perdure.{items} h on h.id = held.value
where l.worker = ?1
  and {piece Live}
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer, json_each(newer.ids) n where newer.seq > l.seq and n.value = h.id)

-- name: {Kind}TakeMany
select id
from perdure.{items}
where id in (select value->>0 from jsonb_each(?1))

-- name: {Kind}Lock
select h.id{piece LockColumns}
from perdure.{items} h
where h.id in (select value->>0 from jsonb_each(?1))

-- name: {Kind}Return
-- Returns the claims of a crashed process to their lanes. Suspects have a batch limit.
update perdure.{items}
set crashes = o.value->>1, batch_limit = o.value->>3, error = ?1,
  last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where perdure.{items}.id in (select value from json_each(l.ids))), last_attempt_at),
  {piece Returned}due_at = max(due_at, ?2 + (o.value->>2))
from jsonb_each(?3) o
where perdure.{items}.id = o.value->>0
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, h.batch_limit is not null, h.priority, h.due_at, h.id
from jsonb_each(?3) o
join perdure.{items} h on h.id = o.value->>0
returning queue

-- name: {Kind}Postpone
-- Postpones a claim that this process cannot run, with the reason.
update perdure.{items}
set error = ?1, {piece Postponed}due_at = ?2 + ?3
where id = ?4

-- name: {Kind}NextWake
-- Returns the microseconds until an item of these lanes is due, or a lease of the queue
-- expires.
select min(at) - ?1
from (
  select (
    select due_at
    from perdure.ready w
    where w.queue = lane.value->>0 and w.suspect = level.suspect and w.priority = level.priority and (not w.suspect or ?4 = 1){openable {Kind} w.id}
    order by w.due_at, w.id
    limit 1
  ) as at
  from jsonb_each(?3) lane, (
    select 0 as suspect, -1 as priority union all select 0, 0 union all select 0, 1 union all select 1, -1 union all select 1, 0 union all select 1, 1
  ) level
  where not {paused lane lane.value->>0 ?1}
  union all
  select (
    select r.due_at
    from perdure.ready r
    join perdure.{items} h on h.id = r.id
    where ?4 > 1 and r.queue in (select value->>0 from jsonb_each(?3)) and r.suspect = 1 and h.batch_limit >= ?4 and not {paused lane r.queue ?1}{openable {Kind} r.id}
    order by r.due_at
    limit 1
  )
  union all
  select (select expires_at from perdure.leases where queue = ?2 order by expires_at limit 1)
  union all
  select min(until_at) from perdure.pauses where until_at > ?1
)
having min(at) is not null

-- name: {Kind}Unready
delete from perdure.ready
where (queue, suspect, priority, due_at, id) in (
  select h.queue, s.value, h.priority, h.due_at, h.id
  from perdure.{items} h, json_each('[0, 1]') s
  where h.id = ?1
)

-- name: {Kind}Attempt
-- Records failed attempts.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select '{word}', o.value->>0, coalesce((select max(a.seq) from perdure.attempts a where a.kind = '{word}' and a.id = o.value->>0), 0) + 1,
  o.value->>2, 'failed', o.value->>3, ?1, ?3 - (o.value->>4), ?3
from jsonb_each(?2) o

-- name: {Kind}AttemptCap
-- Deletes all attempts except the newest.
delete from perdure.attempts
where kind = '{word}' and id in (select value->>0 from jsonb_each(?1))
  and seq <= (select max(b.seq) - 50 from perdure.attempts b where b.kind = '{word}' and b.id = perdure.attempts.id)

-- name: Among
-- A condition: the column is one of a set of ids.
{of} in (select value->>0 from jsonb_each({value}))
