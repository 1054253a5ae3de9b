-- Leases of running work and their interrupts, on MySQL. Tests pass the time as now;
-- otherwise now is null and the server's clock decides. Joins name their index: the planner
-- would scan a small table, which locks rows in another order than a search by the key.

-- name: LeaseShare
-- Blocks the reaper and cancel until the outcomes are committed. Locks in order, so that
-- two transactions cannot deadlock. The lock is exclusive: with a shared lock, a waiting
-- heartbeat and the delete of the lease that follows would deadlock.
select l.token
from (
  select chosen.token
  from json_table(?1, '$[*]' columns (token varchar(36) collate {collation} path '$[0]')) chosen
  order by chosen.token
  limit 1000000000
) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token
for update

-- name: LeaseSee
select l.token
from json_table(?1, '$[*]' columns (token varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token

-- name: InterruptList
select i.id, i.token
from json_table(?1, '$[*]' columns (token varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.interrupts i force index (primary) on i.token = o.token

-- name: InterruptDelete
delete i
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', token varchar(36) collate {collation} path '$[1]')) o
straight_join perdure.interrupts i force index (primary) on i.token = o.token and i.id = o.id

-- name: LeaseExpired
-- The leases are found before they are locked: a locking scan of the index also locks the
-- first lease that is not expired. Its heartbeat and the other reapers would wait for that
-- lock.
select l.token, l.worker
from (
  select x.token
  from perdure.leases x force index (leases_due_idx)
  where x.queue = ?1 and x.expires_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
  order by x.expires_at
  limit 10000
) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token
where l.expires_at <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
limit ?3
for update skip locked

-- name: LeaseDelete
delete l
from json_table(?1, '$[*]' columns (token varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token

-- name: LeaseOf
select token
from perdure.leases
where locate(?1, ids) > 0
order by seq desc
limit 1

-- name: InterruptInsert
insert into perdure.interrupts (id, token)
values (?1, ?2)
on duplicate key update id = perdure.interrupts.id

-- name: PauseSet
insert into perdure.pauses (target, reason, actor, paused_at, until_at)
values (?, ?, ?, {now ?}, ?)
on duplicate key update reason = values(reason), actor = values(actor), paused_at = values(paused_at), until_at = values(until_at)
