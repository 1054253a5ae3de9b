-- The journal of durable functions, on SQLite.

-- name: JournalInsert
insert into perdure.journal (instance_id, key, seq, kind, attempt, result, error, worker, began_at, ended_at)
select o.value->>0, o.value->>1, o.value->>2, o.value->>3, o.value->>4, o.value->>5, o.value->>6, ?1, ?3 - (o.value->>7) - (o.value->>8), ?3 - (o.value->>8)
from jsonb_each(?2) o

-- name: JournalFail
-- The failures of a step are one row, which has the last failure.
insert into perdure.journal (instance_id, key, seq, kind, attempt, result, error, worker, began_at, ended_at)
select o.value->>0, o.value->>1, o.value->>2, o.value->>3, o.value->>4, o.value->>5, o.value->>6, ?1, ?3 - (o.value->>7) - (o.value->>8), ?3 - (o.value->>8)
from jsonb_each(?2) o
where true
on conflict (instance_id, key) do update
set attempt = excluded.attempt, result = excluded.result, error = excluded.error, worker = excluded.worker, began_at = excluded.began_at, ended_at = excluded.ended_at

-- name: JournalRead
select j.instance_id, j.key, j.seq, j.kind, j.attempt, j.result, j.error, j.worker, j.began_at, j.ended_at
from jsonb_each(?1) o
cross join perdure.journal j on j.instance_id = o.value->>0

-- name: JournalDelete
delete from perdure.journal
where instance_id in (select value->>0 from jsonb_each(?1))

-- name: JournalReopen
-- Removes the failures. If compensation has begun, only its own: the function must fail again.
delete from perdure.journal
where instance_id in (select value->>0 from jsonb_each(?1)) and (error is not null or kind = 3)
  and (key >= '~' or instance_id not in (select u.instance_id from perdure.journal u where u.instance_id in (select value->>0 from jsonb_each(?1)) and u.key >= '~'))

-- name: InstanceUncancel
-- A function whose compensation is complete (~@) is not cancelled any more.
update perdure.instances
set cancel_reason = null
where id in (select value->>0 from jsonb_each(?1)) and cancel_reason is not null and exists (select 1 from perdure.journal j where j.instance_id = perdure.instances.id and j.key = '~@')

-- name: JournalSealed
select json_array(instance_id, key), instance_id, key, result
from perdure.journal
where result is not null and (instance_id, key) > (?1 ->> 0, ?1 ->> 1)
order by instance_id, key
limit ?2

-- name: JournalReseal
update perdure.journal
set result = ?1
where instance_id = ?2 ->> 0 and key = ?2 ->> 1 and result = ?3
