-- What the server stores, on MySQL: nodes, samples of charts, keys of requests, tokens, the
-- audit log. now is given by tests; otherwise it is null and the server's clock decides.

-- name: SampleInsert
insert into perdure.samples (kind, at, finished, failed, due)
values (?1, ?2, ?3, ?4, ?5)
on duplicate key update kind = perdure.samples.kind

-- name: WaitsInsert
insert into perdure.waits (at, node, buckets)
values (?1, ?2, ?3)
on duplicate key update node = perdure.waits.node
