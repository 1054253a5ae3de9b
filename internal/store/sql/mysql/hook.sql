-- Durable hooks: what differs in how time is told. now is given by tests;
-- otherwise it is null and the server's clock decides.

-- name: HookInsert
insert into perdure.hooks (id, namespace, name, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
select ?, ?, ?, ?, ?, ?, ?, ?, ?,
  t.at_now, case when t.at_due > t.at_now then t.at_due end, greatest(t.at_due, t.at_now)
from (select coalesce(cast(? as datetime(6)), utc_timestamp(6)) as at_now, coalesce(cast(? as datetime(6)), coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond) as at_due) t

-- name: HookComplete
update perdure.hooks
set status = 'completed', attempts = attempts + 1, finished_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)), next_attempt_at = null,
  token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookRetry
update perdure.hooks
set status = 'pending', attempts = attempts + 1, batch_limit = null, error = ?, next_attempt_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond, due_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookFail
update perdure.hooks
set status = 'failed', attempts = attempts + 1, error = ?, finished_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)), next_attempt_at = null,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookRelease
update perdure.hooks
set status = 'pending', worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookPostpone
-- Gives a claim back for a while, at no cost, with an error if there is one.
update perdure.hooks
set status = 'pending', error = coalesce(?, error), next_attempt_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond, due_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookExtend
update perdure.hooks
set lease_expires_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond
where id = ? and token = ?

-- name: HookRevive
-- An operator's retry: due now, with all attempts before it.
update perdure.hooks
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)), finished_at = null
where id = ? and status in ('failed', 'quarantined', 'cancelled', 'completed')

-- name: HookHasten
-- An operator's retry of a hook that waits: due now.
update perdure.hooks
set next_attempt_at = null, due_at = coalesce(cast(? as datetime(6)), utc_timestamp(6))
where id = ? and status = 'pending'

-- name: HookCancel
-- A hook that runs is cancelled too: its claim is gone, so its outcome is
-- dropped and its context ends with the next heartbeat.
update perdure.hooks
set status = 'cancelled', finished_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)), next_attempt_at = null, worker = null, token = null, lease_expires_at = null
where id = ? and status in ('pending', 'processing')

-- name: HookExpired
-- First half of the return of expired claims: lock them.
select id, name, crashes, coalesce(worker, ''), coalesce(token, ''), batch_limit
from perdure.hooks
where namespace = ? and status = 'processing' and lease_expires_at <= coalesce(cast(? as datetime(6)), utc_timestamp(6))
order by lease_expires_at
limit ?
for update skip locked

-- name: HookReturn
-- Second half, for one that is locked.
update perdure.hooks
set status = ?, finished_at = case when ? then coalesce(cast(? as datetime(6)), utc_timestamp(6)) end, crashes = ?, batch_limit = ?,
  next_attempt_at = case when ? then coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond end,
  due_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond, error = ?,
  token = null, lease_expires_at = null
where id = ?

-- name: HookCandidates
-- The due rows of all names and priorities, not locked yet. The parts are
-- written by the program in place of {due}.
select id
from ({due}) due
order by priority, due_at, id
limit ?

-- name: HookCandidatesPart
(
  select id, priority, due_at
  from perdure.hooks
  where status = 'pending' and namespace = ? and name = ? and priority = {priority} and due_at <= coalesce(cast(? as datetime(6)), utc_timestamp(6))
    and (batch_limit is null or batch_limit >= ?){openable Row payload}
  order by due_at, id
  limit ?
)

-- name: HookLock
-- Locks the candidates that nobody else has taken meanwhile. The ids are
-- written by the program in place of {ids}.
select id, name, payload, priority, policy, max_attempts, attempts, crashes, batch_limit, unit_id, trace, created_at, due_at
from perdure.hooks
where id in ({ids}) and status = 'pending'
for update skip locked

-- name: HookTake
update perdure.hooks
set status = 'processing', worker = ?, token = ?, last_attempt_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)), lease_expires_at = coalesce(cast(? as datetime(6)), utc_timestamp(6)) + interval ? microsecond
where id in ({ids})

-- name: HookNextWake
-- Microseconds until something is due: a hook that is handled here, or an
-- expired claim of anybody.
select timestampdiff(microsecond, coalesce(cast(? as datetime(6)), utc_timestamp(6)), min(at))
from (
  {due}
  union all
  select min(lease_expires_at) as at
  from perdure.hooks
  where status = 'processing' and namespace = ?
) wakes

-- name: HookNextWakePart
select min(due_at) as at
from perdure.hooks
where status = 'pending' and namespace = ? and name = ? and priority = {priority} and (batch_limit is null or batch_limit >= ?){openable Row payload}

-- name: HookPurge
-- A hook goes only after what is recorded of it.
delete from perdure.attempts
where kind = 'hook' and id in (
  select id
  from (
    select id
    from perdure.hooks
    where status in ('completed', 'cancelled') and finished_at <= coalesce(cast(? as datetime(6)), utc_timestamp(6)) - interval ? microsecond
    order by finished_at, id
    limit ?
  ) old
)
;
delete from perdure.hooks
where status in ('completed', 'cancelled') and finished_at <= coalesce(cast(? as datetime(6)), utc_timestamp(6)) - interval ? microsecond
  and not exists (select 1 from perdure.attempts a where a.kind = 'hook' and a.id = perdure.hooks.id)
limit ?

-- name: HookPurgeDead
-- A hook goes only after what is recorded of it.
delete from perdure.attempts
where kind = 'hook' and id in (
  select id
  from (
    select id
    from perdure.hooks
    where status in ('failed', 'quarantined') and finished_at <= coalesce(cast(? as datetime(6)), utc_timestamp(6)) - interval ? microsecond
    order by finished_at, id
    limit ?
  ) old
)
;
delete from perdure.hooks
where status in ('failed', 'quarantined') and finished_at <= coalesce(cast(? as datetime(6)), utc_timestamp(6)) - interval ? microsecond
  and not exists (select 1 from perdure.attempts a where a.kind = 'hook' and a.id = perdure.hooks.id)
limit ?
