-- State machines whose steps are HTTP endpoints, on PostgreSQL.

-- name: RemoteGet
-- Locked: whoever changes a machine takes turns with others who do.
select fsm, version, spec, secrets, created_at, updated_at
from perdure.remote_definitions
where fsm = ? and version = ?
for update

-- name: RemoteInsert
insert into perdure.remote_definitions (fsm, version, spec, secrets, created_at, updated_at)
select ?, ?, ?, ?, t.now, t.now
from (select coalesce(?::timestamptz, now()) as now) as t
on conflict do nothing

-- name: RemoteUpdate
update perdure.remote_definitions
set spec = ?, secrets = ?, updated_at = coalesce(?::timestamptz, now())
where fsm = ? and version = ?
