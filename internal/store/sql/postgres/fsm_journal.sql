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
delete from perdure.journal j
using unnest(?::uuid[]) as o (id)
where j.instance_id = o.id and (j.error is not null or j.kind = 3)

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
