-- State machines whose steps are HTTP endpoints, on PostgreSQL.

-- name: RemoteInsert
insert into perdure.remote_definitions (fsm, version, spec, secrets, created_at, updated_at)
select ?, ?, ?, ?, t.now, t.now
from (select coalesce(?::timestamptz, now()) as now) as t
on conflict do nothing
