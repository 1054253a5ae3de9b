-- The history of instances, on PostgreSQL.

-- name: TransitionInsert
insert into perdure.transitions (instance_id, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at)
select id, step, outcome, next, attempt, crashes, error, ?, t.now - took * interval '1 microsecond', t.now
from unnest(?::uuid[], ?::text[], ?::text[], ?::text[], ?::integer[], ?::integer[], ?::text[], ?::bigint[])
  as o (id, step, outcome, next, attempt, crashes, error, took),
  (select coalesce(?::timestamptz, now()) as now) t
