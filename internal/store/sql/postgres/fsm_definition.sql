-- The machines that processes know, on PostgreSQL.

-- name: DefinitionRecord
insert into perdure.definitions (fsm, version, first_step, queue, steps, schema, cancel_step, updated_at)
values (?, ?, ?, ?, ?, ?, ?, coalesce(?::timestamptz, now()))
on conflict (fsm, version) do update
set first_step = excluded.first_step, queue = excluded.queue, steps = excluded.steps, schema = excluded.schema, cancel_step = excluded.cancel_step, updated_at = excluded.updated_at

-- name: PolicyRecord
-- Nothing is written if the newest policies are these.
insert into perdure.policies (fsm, version, since, retry)
select $1::text, $2::integer, coalesce($4::timestamptz, now()), $3::text
where $3::text is distinct from (select retry from perdure.policies where fsm = $1::text and version = $2::integer order by since desc limit 1)
on conflict (fsm, version, since) do update
set retry = excluded.retry
