-- Fsm seal: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: RemoteSealed
select fsm || '/' || {text version}, {text secrets}
from perdure.remote_definitions
where fsm || '/' || {text version} > ?
order by 1
limit ?

-- name: RemoteReseal
update perdure.remote_definitions
set secrets = ?
where fsm || '/' || {text version} = ? and {text secrets} = ?
