-- Durable hooks: what differs in how time is told. now is given by tests and
-- by SQLite's process; otherwise it is null and the server's clock decides.

-- name: HookInsert
insert into perdure.hooks (id, namespace, name, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
select ?::text, ?::text, ?::text, ?::json, ?::smallint, ?::json, ?::integer, ?::text, ?::text,
  t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now)
from (select coalesce(?::timestamptz, now()) as at_now, coalesce(?::timestamptz, coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond') as at_due) t

-- name: HookComplete
update perdure.hooks
set status = 'completed', attempts = attempts + 1, finished_at = coalesce(?::timestamptz, now()), next_attempt_at = null,
  token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookRetry
update perdure.hooks
set status = 'pending', attempts = attempts + 1, batch_limit = null, error = ?, next_attempt_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond', due_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond',
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookFail
update perdure.hooks
set status = 'failed', attempts = attempts + 1, error = ?, finished_at = coalesce(?::timestamptz, now()), next_attempt_at = null,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookRelease
update perdure.hooks
set status = 'pending', worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookPostpone
-- Gives a claim back for a while, at no cost, with an error if there is one.
update perdure.hooks
set status = 'pending', error = coalesce(?::text, error), next_attempt_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond', due_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond',
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookExtend
update perdure.hooks
set lease_expires_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond'
where id = ? and token = ?

-- name: HookRevive
-- An operator's retry: due now, with all attempts before it.
update perdure.hooks
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = coalesce(?::timestamptz, now()), finished_at = null
where id = ? and status in ('failed', 'quarantined', 'cancelled', 'completed')

-- name: HookHasten
-- An operator's retry of a hook that waits: due now.
update perdure.hooks
set next_attempt_at = null, due_at = coalesce(?::timestamptz, now())
where id = ? and status = 'pending'

-- name: HookCancel
-- A hook that runs is cancelled too: its claim is gone, so its outcome is
-- dropped and its context ends with the next heartbeat.
update perdure.hooks
set status = 'cancelled', finished_at = coalesce(?::timestamptz, now()), next_attempt_at = null, worker = null, token = null, lease_expires_at = null
where id = ? and status in ('pending', 'processing')

-- name: HookExpired
-- First half of the return of expired claims: lock them.
select id, name, crashes, coalesce(worker, ''), coalesce(token, ''), batch_limit
from perdure.hooks
where namespace = ? and status = 'processing' and lease_expires_at <= coalesce(?::timestamptz, now())
order by lease_expires_at
limit ?
for update skip locked

-- name: HookReturn
-- Second half, for one that is locked.
update perdure.hooks
set status = ?, finished_at = case when ?::boolean then coalesce(?::timestamptz, now()) end, crashes = ?, batch_limit = ?::integer,
  next_attempt_at = case when ?::boolean then coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond' end,
  due_at = coalesce(?::timestamptz, now()) + ?::bigint * interval '1 microsecond', error = ?,
  token = null, lease_expires_at = null
where id = ?

-- name: HookClaim
with due as (
  select h.id
  from unnest($7::text[]) as handled (name)
  cross join (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select id, due_at
    from perdure.hooks
    where namespace = $6 and name = handled.name and priority = level.priority
      and status = 'pending' and due_at <= coalesce($3::timestamptz, now()) and (batch_limit is null or batch_limit >= $8::integer){openable Row payload}
    order by due_at, id
    limit $5
    for update skip locked
  ) h
  order by level.priority, h.due_at, h.id
  limit $5
)
update perdure.hooks h
set status = 'processing', worker = $1, token = $2, last_attempt_at = coalesce($3::timestamptz, now()),
  lease_expires_at = coalesce($3::timestamptz, now()) + $4::bigint * interval '1 microsecond'
from due
where h.id = due.id
returning h.id, h.name, h.payload, h.priority, h.policy, h.max_attempts, h.attempts, h.crashes, h.batch_limit, h.unit_id, h.trace, h.created_at, h.due_at

-- name: HookNextWake
-- Microseconds until something is due: a hook that is handled here, or an
-- expired claim of anybody.
select (extract(epoch from least(greatest(min(at), '0001-01-02 00:00:00+00'), '9999-12-31 00:00:00+00') - coalesce($1::timestamptz, now())) * 1000000)::bigint
from (
  select h.due_at as at
  from unnest($3::text[]) as handled (name)
  cross join (values (-1), (0), (1)) as level (priority)
  cross join lateral (
    select due_at
    from perdure.hooks
    where namespace = $2 and name = handled.name and priority = level.priority and status = 'pending'
      and (batch_limit is null or batch_limit >= $4::integer){openable Row payload}
    order by due_at, id
    limit 1
  ) h
  union all
  (
    select lease_expires_at
    from perdure.hooks
    where namespace = $2 and status = 'processing'
    order by lease_expires_at
    limit 1
  )
) wakes
having min(at) is not null

-- name: HookPurge
with old as (
  select id
  from perdure.hooks
  where status in ('completed', 'cancelled') and finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
  order by finished_at
  limit $3
  for update skip locked
), attempts as (
  delete from perdure.attempts a
  using old
  where a.kind = 'hook' and a.id = old.id
)
delete from perdure.hooks h
using old
where h.id = old.id

-- name: HookPurgeDead
with old as (
  select id
  from perdure.hooks
  where status in ('failed', 'quarantined') and finished_at <= coalesce($1::timestamptz, now()) - $2::bigint * interval '1 microsecond'
  order by finished_at
  limit $3
  for update skip locked
), attempts as (
  delete from perdure.attempts a
  using old
  where a.kind = 'hook' and a.id = old.id
)
delete from perdure.hooks h
using old
where h.id = old.id
