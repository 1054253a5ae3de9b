-- The invariants of hooks, on PostgreSQL. Each statement returns the violations of its
-- rule: the id of a hook, and its name or a description of the problem.

-- name: HookDoctorEnded
-- Rows that belong to a hook belong to an existing hook, and an end has the creation time
-- of its hook.
select r.id::text, 'ready of no hook'
from perdure.ready r
where starts_with(r.queue, 'hook' || chr(9)) and not exists (select 1 from perdure.hook_items h where h.id = r.id)
union all
select coalesce(h.key, e.id::text), case when h.id is null then 'end of no hook' else 'end with another time of creation' end
from perdure.hook_ends e
left join perdure.hook_items h on h.id = e.id
where h.id is null or h.created_at <> e.created_at

-- name: HookDoctorAttempts
-- A hook has no more attempts than its policy allows.
select coalesce(h.key, h.id::text), h.name
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
where h.attempt + case when e.status = 'done' then 1 else 0 end > h.max_attempts

-- name: HookDoctorUnhandled
-- A hook that has been due for long has a process that handles it.
select coalesce(h.key, h.id::text), h.name
from perdure.ready r
join perdure.hook_items h on h.id = r.id
where starts_with(r.queue, 'hook' || chr(9)) and r.due_at < ?
