-- State machines whose steps are HTTP endpoints.

-- name: RemoteList
-- The newest version of each machine first.
select fsm, version, spec, secrets, created_at, updated_at
from perdure.remote_definitions
order by fsm, version desc

-- name: RemoteDelete
delete from perdure.remote_definitions
where fsm = ? and version = ?

-- name: DefinitionForget
delete from perdure.definitions
where fsm = ? and version = ?
