-- The journal of durable functions, on PostgreSQL.

-- name: JournalInsert
insert into perdure.journal (instance_id, key, seq, kind, attempt, result, error, worker, began_at, ended_at)
select o.id, o.key, o.seq, o.kind, o.attempt, o.result::json, o.error, ?, t.now - (o.took + o.ago) * interval '1 microsecond', t.now - o.ago * interval '1 microsecond'
from unnest(?::uuid[], ?::text[], ?::integer[], ?::integer[], ?::integer[], ?::text[], ?::text[], ?::bigint[], ?::bigint[])
  as o (id, key, seq, kind, attempt, result, error, took, ago),
  (select coalesce(?::timestamptz, now()) as now) t

-- name: JournalFail
-- The failures of a step are one row, which has the last failure.
insert into perdure.journal (instance_id, key, seq, kind, attempt, result, error, worker, began_at, ended_at)
select o.id, o.key, o.seq, o.kind, o.attempt, o.result::json, o.error, ?, t.now - (o.took + o.ago) * interval '1 microsecond', t.now - o.ago * interval '1 microsecond'
from unnest(?::uuid[], ?::text[], ?::integer[], ?::integer[], ?::integer[], ?::text[], ?::text[], ?::bigint[], ?::bigint[])
  as o (id, key, seq, kind, attempt, result, error, took, ago),
  (select coalesce(?::timestamptz, now()) as now) t
on conflict (instance_id, key) do update
set attempt = excluded.attempt, result = excluded.result, error = excluded.error, worker = excluded.worker, began_at = excluded.began_at, ended_at = excluded.ended_at

-- name: JournalRead
-- A limit keeps the planner from turning the lateral join into a scan of the table.
select j.instance_id::text, j.key, j.seq, j.kind, j.attempt, j.result::text, j.error, j.worker, j.began_at, j.ended_at
from unnest(?::uuid[]) as o (id)
cross join lateral (
  select *
  from perdure.journal w
  where w.instance_id = o.id
  limit 1000000
) j

-- name: JournalDelete
delete from perdure.journal j
using unnest(?::uuid[]) as o (id)
where j.instance_id = o.id

-- name: JournalReopen
-- Removes the failures. If compensation has begun, only its own: the function must fail again.
delete from perdure.journal j
using unnest(?::uuid[]) as o (id)
where j.instance_id = o.id and (j.error is not null or j.kind = 3)
  and (starts_with(j.key, '~') or not exists (select 1 from perdure.journal u where u.instance_id = o.id and starts_with(u.key, '~')))

-- name: InstanceUncancel
-- A function whose compensation is complete (~@) is not cancelled any more.
update perdure.instances i
set cancel_reason = null
where i.id = any(?::uuid[]) and i.cancel_reason is not null and exists (select 1 from perdure.journal j where j.instance_id = i.id and j.key = '~@')

-- name: JournalSealed
select json_build_array(instance_id, key)::text, instance_id::text, key, result::text
from perdure.journal
where result is not null and (instance_id, key) > (($1::json ->> 0)::uuid, $1::json ->> 1)
order by instance_id, key
limit $2

-- name: JournalReseal
update perdure.journal
set result = $1
where instance_id = ($2::json ->> 0)::uuid and key = $2::json ->> 1 and result::text = $3
