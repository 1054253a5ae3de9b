-- What must hold of hooks. Each statement returns what breaks its rule: the id of
-- a hook, and its name.

-- name: HookDoctorEnded
-- A hook has an end exactly if it has ended.
select id, name
from perdure.hooks
where (status in ('completed', 'failed', 'quarantined', 'cancelled')) <> (finished_at is not null)

-- name: HookDoctorAttempts
-- A hook is not tried more often than its policy has it.
select id, name
from perdure.hooks
where attempts > max_attempts

-- name: HookDoctorStuck
-- A claim that expired long ago was returned by somebody.
select id, name
from perdure.hooks
where status = 'processing' and lease_expires_at < ?

-- name: HookDoctorUnhandled
-- A hook that has been due for long has a process that handles it.
select id, name
from perdure.hooks
where status = 'pending' and due_at < ?

-- name: HookDoctorKept
-- What is recorded of a hook is kept with it.
select a.id, min(a.error)
from perdure.attempts a
where a.kind = 'hook' and not exists (select 1 from perdure.hooks h where h.id = a.id)
group by a.id
