-- The definitions that processes know, on SQLite.

-- name: PolicyRecord
-- Writes nothing if the newest policies are the same.
insert into perdure.policies (fsm, version, since, retry)
select ?1, ?2, ?4, ?3
where ?3 is not (select retry from perdure.policies where fsm = ?1 and version = ?2 order by since desc limit 1)
on conflict (fsm, version, since) do update
set retry = excluded.retry
