-- The retry policies that instances of state machines were started with.

-- name: PolicyList
select since, retry
from perdure.policies
where fsm = ? and version = ?
order by since

-- name: PolicyChange
update perdure.policies
set retry = ?
where fsm = ? and version = ? and since = ?
