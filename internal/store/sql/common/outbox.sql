-- The outbox: the clock and the entries.

-- name: ClockAdvance
-- Updates exactly one row. If it updates none, the counter is exhausted or was
-- never seeded.
update perdure.outbox_clock
set counter = counter + ?
where id = 1 and counter <= ?

-- name: ClockRead
select incarnation, counter
from perdure.outbox_clock
where id = 1

-- name: ClockLock
select incarnation, counter
from perdure.outbox_clock
where id = 1
{lock for no key update}

-- name: ClockRestart
update perdure.outbox_clock
set incarnation = incarnation + 1, counter = 0
where id = 1 and incarnation < 65535

-- name: IncarnationInsert
insert into perdure.outbox_incarnations (incarnation, after_stamp, reason, created_at)
values (?, ?, ?, ?)

-- name: IncarnationList
select incarnation, after_stamp, reason, created_at
from perdure.outbox_incarnations
order by incarnation

-- name: OutboxInsert
insert into perdure.outbox (versionstamp, unit_id, payload, ref_map, created_at)
values (?, ?, ?, ?, ?)

-- name: OutboxList
select versionstamp, unit_id, payload, ref_map, created_at
from perdure.outbox
where versionstamp > ?
order by versionstamp
limit ?

-- name: OutboxByUnit
select versionstamp, unit_id, payload, ref_map, created_at
from perdure.outbox
where unit_id = ?

-- name: OutboxOldest
select versionstamp, created_at
from perdure.outbox
where versionstamp <= ?
order by versionstamp
limit ?

-- name: OutboxDelete
delete from perdure.outbox
where versionstamp <= ?

-- name: OutboxStamps
select versionstamp
from perdure.outbox
where versionstamp > ?
order by versionstamp
limit ?
