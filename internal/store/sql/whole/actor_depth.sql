-- How many delays of actors there are, for metrics.

-- name: DelayDepth
-- What waits are delays, and what needs somebody are actors: one that is quarantined
-- keeps its delays.
select 'pending', count(*) from (select 1 from perdure.timers where status = 'pending' limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') and status = 'error' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') and status = 'quarantined' limit 10000) n
