-- The processes that run, and what they have finished.

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
