-- State machines whose steps are HTTP endpoints, on SQLite.

-- name: RemoteGet
select fsm, version, spec, secrets, created_at, updated_at
from perdure.remote_definitions
where fsm = ? and version = ?

-- name: RemoteInsert
insert into perdure.remote_definitions (fsm, version, spec, secrets, created_at, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?5)
on conflict do nothing

-- name: RemoteUpdate
update perdure.remote_definitions
set spec = ?, secrets = ?, updated_at = ?
where fsm = ? and version = ?
