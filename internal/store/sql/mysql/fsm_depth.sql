-- How many instances there are, for metrics, on MySQL. Ready rows of
-- other kinds do not count.

-- name: InstanceDepth
select 'ready', count(*) from (
  (select 1 from perdure.ready where queue < concat('alarm', char(9 using utf8mb4)) limit 10000)
  union all
  (select 1 from perdure.ready where queue >= concat('alarm', char(10 using utf8mb4)) and queue < concat('hook', char(9 using utf8mb4)) limit 10000)
  union all
  (select 1 from perdure.ready where queue >= concat('hook', char(10 using utf8mb4)) limit 10000)
  limit 10000
) n
union all
select 'waiting', count(*) from (select 1 from perdure.waiting limit 10000) n
union all
select 'joining', count(*) from (select 1 from perdure.barriers limit 10000) n
union all
select 'queued', count(*) from (select 1 from perdure.partition_waiting limit 10000) n
union all
select 'unrouted', count(*) from (select 1 from perdure.unrouted limit 10000) n
union all
select 'failed', count(*) from (select 1 from perdure.finished where dead = 1 and status = 'failed' limit 10000) n
union all
select 'quarantined', count(*) from (select 1 from perdure.finished where dead = 1 and status = 'quarantined' limit 10000) n
