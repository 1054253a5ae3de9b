-- Durable hooks, on MySQL. now is given by tests; otherwise it is null and the server's
-- clock decides. Sets are passed as JSON, an array for each row; a lone ; stands between
-- the statements of one name. Values are numbered, see bind.go.
--
-- A statement that changes rows locks what it reads of other tables, unless it is an
-- insert. What a claim has locked is therefore kept in a variable of the session, and
-- joins that change rows say their order.

-- name: HookInsert
insert into perdure.hook_items (id, `key`, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
  t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now)
from (
  select coalesce(cast(?12 as datetime(6)), utc_timestamp(6)) as at_now,
    coalesce(cast(?13 as datetime(6)), coalesce(cast(?14 as datetime(6)), utc_timestamp(6)) + interval ?15 microsecond) as at_due
) t
;
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from perdure.hook_items
where id = ?1

-- name: HookClaim
-- Takes due rows of some lanes, the most urgent and then the oldest first, under one
-- lease. Suspects are claimed by HookSuspectClaim.
select json_arrayagg(json_array(claimed.queue, claimed.priority, claimed.due_at, claimed.id)) into @perdure_claim
from (
  select due.queue, due.priority, due.due_at, due.id
  from (
{each ?8}
    (
      select w.queue, w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?8 and w.suspect = ?6 and w.priority = -1 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)){openable Hook w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
    union all
    (
      select w.queue, w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?8 and w.suspect = ?6 and w.priority = 0 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)){openable Hook w.id}
      order by w.due_at, w.id
      limit ?3
      for update skip locked
    )
    union all
    (
      select w.queue, w.priority, w.due_at, w.id
      from perdure.ready w force index (primary)
      where w.queue = ?8 and w.suspect = ?6 and w.priority = 1 and w.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)){openable Hook w.id}
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
select h.id, coalesce(h.key, h.id), h.name, h.payload, h.priority, h.policy, h.max_attempts, h.attempt, h.crashes, h.unit_id, h.trace, h.created_at, h.due_at
from json_table(@perdure_claim, '$[*]' columns (id varchar(36) collate {collation} path '$[3]')) held
straight_join perdure.hook_items h on h.id = held.id
order by h.priority, h.due_at, h.id

-- name: HookSuspectList
-- Due suspects that may be run, in the order in which they are: large batches first, as
-- they are the least suspicious.
select r.id, (select coalesce(h.batch_limit, 1) from perdure.hook_items h where h.id = r.id) as size
from json_table(?1, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
where r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) and greatest((select coalesce(h.batch_limit, 1) from perdure.hook_items h where h.id = r.id), 1) >= ?3{openable Hook r.id}
order by size desc, r.priority, r.due_at, r.id
limit ?4
for update skip locked

-- name: HookSuspectClaim
-- HookClaim for suspects that were chosen and are locked.
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

-- name: HookSuspectDue
select 1
from json_table(?1, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
where r.due_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
limit 1

-- name: HookHeld
-- The hooks of the leases of a process that are in no other place, and thus held by them.
-- Joins find a row of ready by its key; of a subquery, MariaDB makes a scan of all rows.
select l.token, l.alone, h.id, h.crashes, coalesce(h.batch_limit, 1), coalesce(h.key, h.id), h.name
from perdure.leases l
straight_join json_table(l.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
straight_join perdure.hook_items h on h.id = held.id
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = 0 and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
left join perdure.ready s on s.queue = h.queue and s.suspect = 1 and s.priority = h.priority and s.due_at = h.due_at and s.id = h.id
where l.worker = ?1 and e.id is null and r.id is null and s.id is null
  and not exists (select 1 from perdure.leases newer where newer.seq > l.seq and locate(h.id, newer.ids) > 0)

-- name: HookTakeMany
select h.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id
order by h.id
for update skip locked

-- name: HookLock
-- In order, so that two transactions cannot deadlock.
select h.id
from (
  select chosen.id
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.id
  limit 1000000000
) o
straight_join perdure.hook_items h on h.id = o.id
for update

-- name: HookReturn
-- A claim whose process crashed: back to its lane. Suspects have a batch limit. The leases
-- are read first, because an update would lock all of them.
select json_arrayagg(json_array(o.id, o.crashes, o.delay, o.batch_limit, (select max(l.claimed_at) from perdure.leases l where locate(o.id, l.ids) > 0))) into @perdure_return
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', crashes int path '$[1]', delay bigint path '$[2]', batch_limit int path '$[3]')) o
;
update json_table(@perdure_return, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', crashes int path '$[1]', delay bigint path '$[2]', batch_limit int path '$[3]', claimed_at datetime(6) path '$[4]'
)) o
straight_join perdure.hook_items h on h.id = o.id
set h.crashes = o.crashes, h.batch_limit = o.batch_limit, h.error = ?1, h.last_attempt_at = coalesce(o.claimed_at, h.last_attempt_at),
  h.next_attempt_at = case when o.delay > 0 then coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond end,
  h.due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond
;
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, case when h.batch_limit is null then 0 else 1 end, h.priority, h.due_at, h.id
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id
;
select h.queue
from json_table(?3, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id

-- name: HookRelease
-- Back to its lane, at the due time of the row.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select h.queue, case when h.batch_limit is null then 0 else 1 end, h.priority, h.due_at, h.id
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id

-- name: HookPostpone
-- A claim that cannot be run here: for later, with the reason.
update perdure.hook_items
set error = ?1, due_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?3 microsecond,
  next_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval ?3 microsecond
where id = ?4

-- name: HookTried
-- Attempts that failed. The hooks are due again after a delay, unless that is null.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', error longtext path '$[1]', took bigint path '$[2]', delay bigint path '$[3]')) o
straight_join perdure.hook_items h on h.id = o.id
set h.attempt = h.attempt + 1, h.batch_limit = null, h.error = o.error,
  h.last_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond,
  h.next_attempt_at = coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond,
  h.due_at = coalesce(coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond, h.due_at)

-- name: HookEnd
-- created_at is given in microseconds since 1970.
insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select o.id, o.status, o.error, ?1, cast('1970-01-01 00:00:00' as datetime(6)) + interval o.created_at microsecond,
  coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (
  id varchar(36) collate {collation} path '$[0]', status varchar(16) collate {collation} path '$[1]', error longtext path '$[2]', created_at bigint path '$[3]', took bigint path '$[4]'
)) o

-- name: HookNextWake
-- Microseconds until something is due: a hook of these lanes, or an expired lease of the
-- queue.
select timestampdiff(microsecond, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), min(wakes.at))
from (
  select (
    select w.due_at
    from perdure.ready w force index (primary)
    where w.queue = lane.name and w.suspect = level.suspect and w.priority = level.priority and (w.suspect = 0 or ?4 = 1){openable Hook w.id}
    order by w.due_at, w.id
    limit 1
  ) as at
  from json_table(?3, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
  straight_join (
    select 0 as suspect, -1 as priority union all select 0, 0 union all select 0, 1 union all select 1, -1 union all select 1, 0 union all select 1, 1
  ) level
  union all
  select min(r.due_at)
  from json_table(?3, '$[*]' columns (name varchar(300) collate {collation} path '$[0]')) lane
  straight_join perdure.ready r force index (primary) on r.queue = lane.name and r.suspect = 1 and r.priority in (-1, 0, 1)
  straight_join perdure.hook_items h on h.id = r.id
  where ?4 > 1 and h.batch_limit >= ?4{openable Hook r.id}
  union all
  select min(expires_at)
  from perdure.leases
  where queue = ?2
) wakes
having min(wakes.at) is not null

-- name: HookFind
-- Locks a hook, by the id that its user knows.
select h.id, h.namespace
from perdure.hook_items h
where h.id = (
  select k.id
  from perdure.hook_items k
  where k.key = ?1
  union all
  select k.id
  from perdure.hook_items k
  where k.id = ?2 and k.key is null
  limit 1
)
for update

-- name: HookGet
select h.id, coalesce(h.key, h.id), h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'processing' else 'pending' end), h.priority, h.policy,
  h.max_attempts, h.attempt + case when e.status = 'completed' then 1 else 0 end, h.crashes, coalesce(e.error, h.error), h.unit_id,
  h.created_at, case when e.id is null then h.next_attempt_at end, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1), h.last_attempt_at), e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1)),
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1)
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.key = ? or h.key is null and h.id = ?

-- name: HookUnready
delete r
from perdure.hook_items h
straight_join perdure.ready r force index (primary) on r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id
where h.id = ?1

-- name: HookUnend
delete from perdure.hook_ends
where id = ?1

-- name: HookRevive
-- A hook that starts over: due now, with all attempts before it.
update perdure.hook_items
set attempt = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
where id = ?2

-- name: HookHasten
-- A hook that waits no longer.
update perdure.hook_items
set next_attempt_at = null, due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
where id = ?2

-- name: HookCancel
-- The end of a hook that is in no other place any more. A process that completes the hook
-- does not lock it: its end may be there, or be committed while this waits for it.
insert ignore into perdure.hook_ends (id, status, created_at, began_at, finished_at)
select h.id, 'cancelled', h.created_at, h.last_attempt_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
from perdure.hook_items h
where h.id = ?2

-- name: HookQuarantine
-- The end of a hook that has crashed too many processes.
update perdure.hook_items h
set h.crashes = h.crashes + 1, h.error = ?1, h.last_attempt_at = coalesce((select max(l.claimed_at) from perdure.leases l where locate(h.id, l.ids) > 0), h.last_attempt_at)
where h.id = ?3
;
insert into perdure.hook_ends (id, status, error, created_at, began_at, finished_at)
select h.id, 'quarantined', ?1, h.created_at, h.last_attempt_at, coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
from perdure.hook_items h
where h.id = ?3

-- name: HookDelete
delete a
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.attempts a on a.kind = 'hook' and a.id = o.id and a.actor_type = '' and a.actor_id = ''
;
delete e
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_ends e on e.id = o.id
;
delete h
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id

-- name: HookPurge
select id
from perdure.hook_ends force index (hook_ends_at_idx)
where dead = 0 and finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by finished_at
limit ?3
for update skip locked

-- name: HookPurgeDead
select id
from perdure.hook_ends force index (hook_ends_at_idx)
where dead = 1 and finished_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by finished_at
limit ?3
for update skip locked

-- name: HookTaken
-- A row whose id a user chooses for another hook.
select 1
from perdure.hook_items
where `key` is null and id = ?
