-- The definitions that processes know, on PostgreSQL.

-- name: PolicyRecord
-- Writes nothing if the newest policies are the same.
insert into perdure.policies (fsm, version, since, retry)
select $1::text, $2::integer, coalesce($4::timestamptz, now()), $3::text
where $3::text is distinct from (select retry from perdure.policies where fsm = $1::text and version = $2::integer order by since desc limit 1)
on conflict (fsm, version, since) do update
set retry = excluded.retry
