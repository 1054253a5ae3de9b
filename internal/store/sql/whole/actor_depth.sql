-- The number of timers of actors, for metrics.

-- name: DelayDepth
-- Ready and scheduled are timers. Failed and quarantined are actors: a quarantined actor
-- keeps its timers.
select 'ready', count(*) from (select 1 from perdure.timers where status = 'pending' and due_at <= ? limit 10000) n
union all
select 'scheduled', count(*) from (select 1 from perdure.timers where status = 'pending' and due_at > ? limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') and status = 'error' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') and status = 'quarantined' limit 10000) n
