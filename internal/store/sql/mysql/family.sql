-- The lifecycle of items of one kind, on MySQL: claim, lease, return. Each statement
-- exists once for every kind that has lanes (see family.go). {Kind}, {word} and {items}
-- are the names of the kind, and {piece X} is its statement X. Tests pass the time as now;
-- otherwise now is null and the server's clock decides. A set is passed as JSON, with an
-- array for each row. A line with only a semicolon separates the statements of one name.
-- Values are numbered; see bind.go.
--
-- A statement that changes rows also locks the rows that it reads from other tables,
-- unless it is an insert. The rows that a claim has locked are therefore kept in a session
-- variable, and joins that change rows fix their order.

-- name: {Kind}Claim
-- Claims due rows of some lanes under one lease: the most urgent first, then the oldest.
-- Suspects are claimed by {Kind}SuspectClaim.
select json_arrayagg(json_array(claimed.queue, claimed.priority, claimed.due_at, claimed.id)) into @perdure_claim
from (
  select due.queue, due.priority, due.due_at, due.id
  from (
{each ?8}
    (
      select w.queue, w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?8 and w.suspect = ?6 and w.priority = -1 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and not {paused lane ?8 ?2}{openable {Kind} w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
    union all
    (
      select w.queue, w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?8 and w.suspect = ?6 and w.priority = 0 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and not {paused lane ?8 ?2}{openable {Kind} w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
    union all
    (
      select w.queue, w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?8 and w.suspect = ?6 and w.priority = 1 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and not {paused lane ?8 ?2}{openable {Kind} w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
{end}
  ) due
  order by due.priority, due.due_at, due.id
  limit ?3
) claimed
;
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select ?4, ?5, ?1, ?6, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?7 microsecond, json_arrayagg(held.id)
from json_table(@perdure_claim, '$[*]' columns (id varchar(36) collate {collation} path '$[3]')) held
having count(*) > 0
;
delete r
from json_table(@perdure_claim, '$[*]' columns (
  queue varchar(300) collate {collation} path '$[0]', priority smallint path '$[1]', due_at datetime(6) path '$[2]', id varchar(36) collate {collation} path '$[3]'
)) held
straight_join perdure.ready r force index (primary)
  on r.queue = held.queue and r.suspect = ?6 and r.priority = held.priority and r.due_at = held.due_at and r.id = held.id
;
select {piece ClaimColumns}
from json_table(@perdure_claim, '$[*]' columns (id varchar(36) collate {collation} path '$[3]')) held
straight_join perdure.{items} h on h.id = held.id
order by h.priority, h.due_at, h.id

-- name: {Kind}SuspectList
-- Returns the due suspects that may run, in the order in which they run. Suspects with a
-- large batch limit come first: they are the least suspicious.
select r.id, (select coalesce(h.batch_limit, 1) from perdure.{items} h where h.id = r.id) as size
from json_table(?1, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
where r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and greatest((select coalesce(h.batch_limit, 1) from perdure.{items} h where h.id = r.id), 1) >= ?3 and not {paused lane r.queue ?2}{openable {Kind} r.id}
order by size desc, r.priority, r.due_at, r.id
limit ?4
for update skip locked

-- name: {Kind}SuspectClaim
-- {Kind}Claim for chosen suspects, which are locked.
select json_arrayagg(json_array(claimed.queue, claimed.priority, claimed.due_at, claimed.id)) into @perdure_claim
from (
  select r.queue, r.priority, r.due_at, r.id
  from json_table(?9, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
  straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
  where r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
    and r.id in (select chosen.id from json_table(?8, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen)
  limit ?3
  for update skip locked
) claimed
;
{rest}

-- name: {Kind}SuspectDue
select 1
from json_table(?1, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
where r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
limit 1

-- name: {Kind}Held
-- Returns the items of a process's leases that are in no other place: the leases hold
-- them. Joins find a row of ready by its key; MariaDB turns a subquery into a full scan.
select l.token, l.alone, h.id, h.crashes, coalesce(h.batch_limit, 1), {piece Public}, {piece Name}
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join perdure.{items} h on h.id = held.id
{piece LiveJoin}
left join perdure.ready r on r.queue = h.queue and r.suspect = 0 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
left join perdure.ready s on s.queue = h.queue and s.suspect = 1 and s.priority = h.priority and s.due_at = h.due_at and s.id = h.id
where l.worker = ?1 and {piece Live} and r.id is null and s.id is null
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and locate(h.id, newer.ids) > 0)

-- name: {Kind}TakeMany
select h.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.{items} h on h.id = o.id
order by h.id
for update skip locked

-- name: {Kind}Lock
-- Locks in order, so that two transactions cannot deadlock.
select h.id{piece LockColumns}
from (
  select chosen.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.id
  limit 1000000000
) o
straight_join perdure.{items} h on h.id = o.id
for update

-- name: {Kind}Return
-- Returns the claims of a crashed process to their lanes. Suspects have a batch limit. The
-- leases are read first, because an update would lock all of them.
select json_arrayagg(json_array(o.id, o.crashes, o.delay, o.batch_limit, (select max(l.claimed_at) from perdure.leases l where locate(o.id, l.ids) > 0))) into @perdure_return
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', crashes int path '$[1]', delay bigint path '$[2]', batch_limit int path '$[3]')) o
;
update json_table(@perdure_return, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', crashes int path '$[1]', delay bigint path '$[2]', batch_limit int path '$[3]', claimed_at datetime(6) path '$[4]'
)) o
straight_join perdure.{items} h on h.id = o.id
set h.crashes = o.crashes, h.batch_limit = o.batch_limit, h.error = ?1, h.last_attempt_at = coalesce(o.claimed_at, h.last_attempt_at),
  {piece Returned}h.due_at = greatest(h.due_at, coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond)
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, case when h.batch_limit is null then 0 else 1 end, h.priority, h.due_at, h.id
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.{items} h on h.id = o.id
;
select h.queue
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.{items} h on h.id = o.id

-- name: {Kind}Release
-- Returns items to their lanes, at the due times in their rows.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, case when h.batch_limit is null then 0 else 1 end, h.priority, h.due_at, h.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.{items} h on h.id = o.id{piece Released}

-- name: {Kind}Postpone
-- Postpones a claim that this process cannot run, with the reason.
update perdure.{items}
set error = ?1, {piece Postponed}due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?3 microsecond
where id = ?4

-- name: {Kind}RetryChange
update perdure.{items} force index (primary)
set policy = ?1, max_attempts = ?2
where queue = ?3 and id > ?4 and id <= ?5

-- name: {Kind}NextWake
-- Returns the microseconds until an item of these lanes is due, or a lease of the queue
-- expires.
select timestampdiff(microsecond, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), min(wakes.at))
from (
  select (
    select w.due_at
    from perdure.ready w force index (primary)
    where w.queue = lane.name and w.suspect = level.suspect and w.priority = level.priority and (w.suspect = 0 or ?4 = 1){openable {Kind} w.id}
    order by w.due_at, w.id
    limit 1
  ) as at
  from json_table(?3, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
  straight_join (
    select 0 as suspect, -1 as priority union all select 0, 0 union all select 0, 1 union all select 1, -1 union all select 1, 0 union all select 1, 1
  ) level
  where not {paused lane lane.name ?1}
  union all
  select min(r.due_at)
  from json_table(?3, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
  straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
  straight_join perdure.{items} h on h.id = r.id
  where ?4 > 1 and h.batch_limit >= ?4 and not {paused lane r.queue ?1}{openable {Kind} r.id}
  union all
  select min(expires_at)
  from perdure.leases
  where queue = ?2
  union all
  select min(until_at)
  from perdure.pauses
  where until_at > coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
) wakes
having min(wakes.at) is not null

-- name: {Kind}Unready
delete r
from perdure.{items} h
straight_join perdure.ready r force index (primary) on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.id = ?1

-- name: {Kind}Attempt
-- Records failed attempts. The leases are locked, so no other process records attempts of
-- these items.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select '{word}', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = '{word}' and a.id = o.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  o.attempt, 'failed', o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', attempt int path '$[2]', error longtext path '$[3]', took bigint path '$[4]')) o

-- name: {Kind}Lost
-- Records the attempts of items that a lease loses. The lease is locked.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select '{word}', h.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = '{word}' and a.id = h.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  h.attempt + h.crashes + 1, ?1, ?2, l.worker, l.claimed_at, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from perdure.leases l
straight_join json_table(?5, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.{items} h on h.id = o.id
where l.token = ?4

-- name: {Kind}AttemptCap
-- Deletes all attempts except the newest.
delete a
from (
  select b.id, max(b.seq) - 50 as seq
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.attempts b on b.kind = '{word}' and b.id = o.id and b.actor_type = '' and b.actor_id = ''
  group by b.id
) newest
straight_join perdure.attempts a on a.kind = '{word}' and a.id = newest.id and a.actor_type = '' and a.actor_id = '' and a.seq <= newest.seq

-- name: Among
-- A condition: the column is one of a set of ids.
{of} in (select chosen.id from json_table({value}, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen)
