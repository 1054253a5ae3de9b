-- State machines whose steps are HTTP endpoints, on SQLite.

-- name: RemoteInsert
insert into perdure.remote_definitions (fsm, version, spec, secrets, created_at, updated_at)
values (?1, ?2, ?3, ?4, ?5, ?5)
on conflict do nothing
