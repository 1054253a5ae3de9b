-- Pauses: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: PauseDelete
delete from perdure.pauses
where target = ?

-- name: PauseSet
insert into perdure.pauses (target, reason, actor, paused_at, until_at)
values (?, ?, ?, {now ?}, ?)
on conflict (target) do update set reason = excluded.reason, actor = excluded.actor, paused_at = excluded.paused_at, until_at = excluded.until_at

-- name: PausePurge
-- Removes pauses that have ended.
delete from perdure.pauses
where until_at <= {now ?}

-- name: PauseList
select target, reason, actor, paused_at, until_at
from perdure.pauses
where until_at is null or until_at > {now ?}
order by target
