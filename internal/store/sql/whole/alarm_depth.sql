-- How many alarms there are, and delays of actors, for metrics.

-- name: AlarmDepth
select 'pending', count(*) from (select 1 from perdure.alarms where kind = 'custom' and status = 'pending' limit 10000) n
union all
select 'processing', count(*) from (select 1 from perdure.alarms where status = 'processing' limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.alarms where status in ('failed', 'quarantined') and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select kind from perdure.alarms where status in ('failed', 'quarantined') and status = 'quarantined' limit 10000) n where kind = 'custom'

-- name: DelayDepth
-- What waits are delays, and what needs somebody are actors: one that is quarantined
-- keeps its delays.
select 'pending', count(*) from (select 1 from perdure.alarms where kind = 'machine' and status = 'pending' limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') and status = 'error' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.actors where status in ('error', 'quarantined') and status = 'quarantined' limit 10000) n
