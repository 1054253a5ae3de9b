-- The consumers of the outbox: their positions, their leases and their dead letters.

-- name: ConsumerGet
select name, position, created_at, updated_at
from perdure.outbox_consumers
where name = ?

-- name: ConsumerList
-- The lease is omitted if it has expired.
select c.name, c.position, c.created_at, c.updated_at, coalesce(case when c.lease_expires_at > {now ?} then c.worker end, ''), case when c.worker is null then 0 else 1 end, c.attempts, c.retry_at, coalesce(c.error, ''), c.stopped,
  (select count(*) from perdure.outbox_dead d where d.consumer = c.name and d.status <> 'retrying')
from perdure.outbox_consumers c
order by c.name

-- name: ConsumerInsert
insert into perdure.outbox_consumers (name, position, created_at, updated_at)
values (?, ?, ?, ?)

-- name: ConsumerAdvance
-- The position only moves forward: a late acknowledgement changes nothing.
update perdure.outbox_consumers
set position = ?, updated_at = ?, attempts = 0, crashes = 0, retry_at = null, error = null, stopped = {boolean ?}
where name = ? and position < ?

-- name: ConsumerReset
-- Revokes the lease: the process that handles entries must not move the position any more.
update perdure.outbox_consumers
set position = ?, updated_at = ?, token = null, lease_expires_at = null,
  attempts = 0, crashes = 0, batch_limit = null, retry_at = null, error = null, stopped = {boolean ?}
where name = ?

-- name: ConsumerDelete
delete from perdure.outbox_consumers
where name = ?

-- name: ConsumerLowest
select position
from perdure.outbox_consumers
order by position
limit 1

-- name: ConsumerLock
-- Returns nothing if another transaction has the row.
select {now ?}, position, coalesce(token, ''), coalesce(worker, ''), lease_expires_at, attempts, crashes, coalesce(batch_limit, 0), retry_at, stopped
from perdure.outbox_consumers
where name = ?
{lock for no key update skip locked}

-- name: ConsumerTake
-- Locks the row of a consumer for an operator.
select position, stopped
from perdure.outbox_consumers
where name = ?
{lock for no key update}

-- name: ConsumerNext
select {now ?}, coalesce(c.worker, ''), c.lease_expires_at, c.retry_at, c.stopped,
  (select o.created_at from perdure.outbox o where o.versionstamp > c.position order by o.versionstamp limit 1),
  (select min(d.due_at) from perdure.outbox_dead d where d.consumer = c.name and d.status = 'retrying')
from perdure.outbox_consumers c
where c.name = ?

-- name: ConsumerLease
update perdure.outbox_consumers
set token = ?, worker = ?, lease_expires_at = {now ?} + {us {bigint ?}}, crashes = ?, batch_limit = ?
where name = ?

-- name: ConsumerExtend
update perdure.outbox_consumers
set lease_expires_at = {now ?} + {us {bigint ?}}
where name = ? and token = ?

-- name: ConsumerHold
-- Moves the position of a consumer whose lease is kept.
update perdure.outbox_consumers
set position = ?, updated_at = ?, attempts = 0, crashes = 0, retry_at = null, error = null
where name = ? and token = ? and position = ?

-- name: ConsumerSettle
-- Ends a lease with the outcome of a batch.
update perdure.outbox_consumers
set position = ?, updated_at = coalesce({timestamptz ?}, updated_at), token = null, lease_expires_at = null,
  attempts = ?, crashes = ?, batch_limit = ?, retry_at = {now ?} + {us {bigint ?}}, error = ?, stopped = {boolean ?}
where name = ? and token = ? and position = ?

-- name: ConsumerRelease
update perdure.outbox_consumers
set token = null, lease_expires_at = null
where name = ? and token = ?

-- name: ConsumerResume
-- Lets a stopped consumer continue.
update perdure.outbox_consumers
set attempts = 0, crashes = 0, batch_limit = 1, retry_at = null, error = null, stopped = {boolean ?}
where name = ?

-- name: OutboxDeadInsert
insert into perdure.outbox_dead (consumer, versionstamp, unit_id, payload, ref_map, entry_created_at, status, error, attempts, created_at)
select {text ?}, versionstamp, unit_id, payload, ref_map, created_at, {text ?}, {text ?}, {integer ?}, {timestamptz ?}
from perdure.outbox
where versionstamp = ?

-- name: OutboxDeadGet
select versionstamp, status
from perdure.outbox_dead
where consumer = ? and versionstamp = ?

-- name: OutboxDeadDue
select versionstamp, unit_id, payload, ref_map, entry_created_at, attempts
from perdure.outbox_dead
where consumer = ? and status = 'retrying' and due_at <= {now ?}
order by due_at
limit 1

-- name: OutboxDeadList
select versionstamp, unit_id, payload, ref_map, entry_created_at, attempts, status, error, created_at
from perdure.outbox_dead
where consumer = ? and versionstamp > ?
order by versionstamp
limit ?

-- name: OutboxDeadUpdate
update perdure.outbox_dead
set status = ?, error = coalesce({text ?}, error), attempts = ?, due_at = {now ?} + {us {bigint ?}}
where consumer = ? and versionstamp = ?

-- name: OutboxDeadDelete
delete from perdure.outbox_dead
where consumer = ? and versionstamp = ?

-- name: OutboxDeadDeleteAll
delete from perdure.outbox_dead
where consumer = ?

-- name: DeadConsumers
select consumer, versionstamp, status, error, attempts, entry_created_at, created_at
from perdure.outbox_dead
where status <> 'retrying' and entry_created_at <= ?1 and (entry_created_at < ?1 or consumer < ?2 or consumer = ?2 and versionstamp < ?3)
order by entry_created_at desc, consumer desc, versionstamp desc
limit ?4

-- name: ConsumerDepth
select 'ready', count(*) from (select 1 from perdure.outbox_dead where status = 'retrying' limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.outbox_dead where status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.outbox_dead where status = 'quarantined' limit 10000) n
