-- The running processes and their counts of finished work.

-- name: NodeRemove
delete from perdure.nodes
where id = ?

-- name: SampleInsert
insert into perdure.samples (kind, at, finished, failed, due)
values (?, ?, ?, ?, ?)
on conflict do nothing

-- name: SampleList
select kind, at, finished, failed, due
from perdure.samples
where at > ?
order by at, kind

-- name: SamplePurge
delete from perdure.samples
where at <= ?

-- name: WaitsInsert
insert into perdure.waits (at, node, buckets)
values (?, ?, ?)
on conflict do nothing

-- name: WaitsList
select at, buckets
from perdure.waits
where at > ?
order by at

-- name: WaitsPurge
delete from perdure.waits
where at <= ?

-- name: NodeBeat
-- A requested drain stays requested.
insert into perdure.nodes (id, host, pid, version, roles, work, running, started_at, seen_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, {now ?8}, {now ?8})
on conflict (id) do update set seen_at = excluded.seen_at, work = excluded.work, running = excluded.running
returning draining

-- name: SampleInstances
select count(*), count(*) filter (where status in ('failed', 'quarantined'))
from perdure.finished
where finished_at > {timestamptz ?1} and finished_at <= {timestamptz ?2}

-- name: SampleHooks
select
  (select count(*) from perdure.hook_ends where status in ('done', 'cancelled') and finished_at > {timestamptz ?1} and finished_at <= {timestamptz ?2}),
  (select count(*) from perdure.hook_ends where status in ('failed', 'quarantined') and finished_at > {timestamptz ?1} and finished_at <= {timestamptz ?2})
