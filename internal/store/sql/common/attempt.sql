-- Attempts that did not succeed: statements of all kinds of work and all databases.

-- name: AttemptList
select coalesce(step, ''), attempt, outcome, error, coalesce(worker, ''), began_at, ended_at
from perdure.attempts
where kind = ? and id = ? and actor_type = '' and actor_id = ''
order by seq
