-- Work that fails now: the newest attempts that did not succeed, and the items of them that are not
-- finished. The ids of the items are added to the statements.

-- name: FailingAttempts
select kind, id, coalesce(step, ''), substr(error, 1, 500), coalesce(worker, ''), ended_at
from perdure.attempts
where ended_at > ? and outcome in ('failed', 'lost')
order by ended_at desc
limit ?

-- name: FailingHooks
-- The subquery with a limit is one lookup for each row: a join may become a scan of all finished
-- hooks.
select {text i.id}, coalesce(i.key, {text i.id}), i.namespace, i.name
from perdure.hook_items i
where i.attempt > 0 and (select 1 from perdure.hook_ends e where e.id = i.id limit 1) is null

-- name: FailingAlarms
select {text i.id}, case when i.actor_type = '' then i.alarm_id else i.actor_type || '/' || i.actor_id || '/' || i.alarm_id end, '', i.type
from perdure.alarm_items i
where i.attempt > 0 and i.dead is null
