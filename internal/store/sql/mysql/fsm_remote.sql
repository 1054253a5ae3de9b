-- State machines whose steps are HTTP endpoints, on MySQL.

-- name: RemoteGet
-- Locked: two changes of a machine take turns.
select fsm, version, spec, secrets, created_at, updated_at
from perdure.remote_definitions
where fsm = ?1 and version = ?2
for update

-- name: RemoteInsert
insert ignore into perdure.remote_definitions (fsm, version, spec, secrets, created_at, updated_at)
values (?1, ?2, ?3, ?4, coalesce(cast(?5 as datetime(6)), utc_timestamp(6)), coalesce(cast(?5 as datetime(6)), utc_timestamp(6)))

-- name: RemoteUpdate
update perdure.remote_definitions
set spec = ?1, secrets = ?2, updated_at = coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
where fsm = ?4 and version = ?5
