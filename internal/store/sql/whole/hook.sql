-- Hook: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: Hook.Live
not exists (select 1 from perdure.hook_ends e where e.id = h.id)

-- name: HookFind
-- Locks a hook by its public id.
select {text h.id}, h.namespace
from perdure.hook_items h
where h.key = ? or h.key is null and h.id = {uuid ?}
{lock for no key update of h}

-- name: HookTaken
-- Returns a row if the id that a user chose is the id of another hook's row.
select 1
from perdure.hook_items
where key is null and id = {uuid ?}

-- name: HookPurge
select {text id}
from perdure.hook_ends
where status in ('done', 'cancelled') and finished_at <= {now ?1} - {us {bigint ?2}}
order by finished_at
limit ?3
{lock for update skip locked}

-- name: HookPurgeDead
select {text id}
from perdure.hook_ends
where status in ('failed', 'quarantined') and finished_at <= {now ?1} - {us {bigint ?2}}
order by finished_at
limit ?3
{lock for update skip locked}
