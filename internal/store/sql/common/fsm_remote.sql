-- State machines whose steps are HTTP endpoints.

-- name: RemoteList
-- The newest version of each definition comes first.
select fsm, version, spec, secrets, created_at, updated_at
from perdure.remote_definitions
order by fsm, version desc

-- name: RemoteDelete
delete from perdure.remote_definitions
where fsm = ? and version = ?

-- name: DefinitionForget
delete from perdure.definitions
where fsm = ? and version = ?

-- name: RemoteGet
-- Locks the row, so that concurrent changes of a definition wait for each other.
select fsm, version, spec, secrets, created_at, updated_at
from perdure.remote_definitions
where fsm = ? and version = ?
{lock for update}

-- name: RemoteUpdate
update perdure.remote_definitions
set spec = ?, secrets = ?, updated_at = {now ?}
where fsm = ? and version = ?
