-- Durable hooks: what differs in how time is told. now is given by tests and
-- by SQLite's process; here it always is.

-- name: HookInsert
insert into perdure.hooks (id, namespace, name, payload, priority, policy, max_attempts, unit_id, trace, created_at, next_attempt_at, due_at)
select ?, ?, ?, ?, ?, ?, ?, ?, ?,
  t.at_now, case when t.at_due > t.at_now then t.at_due end, max(t.at_due, t.at_now)
from (select ? as at_now, coalesce(?, ? + ?) as at_due) t

-- name: HookComplete
update perdure.hooks
set status = 'completed', attempts = attempts + 1, finished_at = ?, next_attempt_at = null,
  token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookRetry
update perdure.hooks
set status = 'pending', attempts = attempts + 1, batch_limit = null, error = ?, next_attempt_at = ? + ?, due_at = ? + ?,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookFail
update perdure.hooks
set status = 'failed', attempts = attempts + 1, error = ?, finished_at = ?, next_attempt_at = null,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookRelease
update perdure.hooks
set status = 'pending', worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookPostpone
-- Gives a claim back for a while, at no cost, with an error if there is one.
update perdure.hooks
set status = 'pending', error = coalesce(?, error), next_attempt_at = ? + ?, due_at = ? + ?,
  worker = null, token = null, lease_expires_at = null
where id = ? and token = ?

-- name: HookExtend
update perdure.hooks
set lease_expires_at = ? + ?
where id = ? and token = ?

-- name: HookRevive
-- An operator's retry: due now, with all attempts before it.
update perdure.hooks
set status = 'pending', attempts = 0, crashes = 0, batch_limit = null, next_attempt_at = null, due_at = ?, finished_at = null
where id = ? and status in ('failed', 'quarantined', 'cancelled', 'completed')

-- name: HookHasten
-- An operator's retry of a hook that waits: due now.
update perdure.hooks
set next_attempt_at = null, due_at = ?
where id = ? and status = 'pending'

-- name: HookCancel
-- A hook that runs is cancelled too: its claim is gone, so its outcome is
-- dropped and its context ends with the next heartbeat.
update perdure.hooks
set status = 'cancelled', finished_at = ?, next_attempt_at = null, worker = null, token = null, lease_expires_at = null
where id = ? and status in ('pending', 'processing')

-- name: HookExpired
-- First half of the return of expired claims.
select id, name, crashes, coalesce(worker, ''), coalesce(token, ''), batch_limit
from perdure.hooks
where namespace = ? and status = 'processing' and lease_expires_at <= ?
order by lease_expires_at
limit ?

-- name: HookReturn
-- Second half.
update perdure.hooks
set status = ?, finished_at = case when ? then ? end, crashes = ?, batch_limit = ?,
  next_attempt_at = case when ? then ? + ? end, due_at = ? + ?, error = ?,
  token = null, lease_expires_at = null
where id = ?

-- name: HookClaim
-- The names are a JSON array. Of each name and priority only the oldest due
-- rows are looked at.
update perdure.hooks
set status = 'processing', worker = ?1, token = ?2, last_attempt_at = ?3, lease_expires_at = ?3 + ?4
where id in (
  select h.id
  from jsonb_each(?7) handled
  cross join (values (-1), (0), (1)) level
  cross join perdure.hooks h
  where h.id in (
    select id
    from perdure.hooks
    where namespace = ?6 and name = handled.value and priority = level.column1 and status = 'pending' and due_at <= ?3
      and (batch_limit is null or batch_limit >= ?8){openable Row payload}
    order by due_at, id
    limit ?5
  )
  order by h.priority, h.due_at, h.id
  limit ?5
)
returning id, name, payload, priority, policy, max_attempts, attempts, crashes, batch_limit, unit_id, trace, created_at, due_at

-- name: HookNextWake
-- Microseconds until something is due: a hook that is handled here, or an
-- expired claim of anybody.
select min(max(min(at), -62135510400000000), 253402214400000000) - ?1
from (
  select (
    select min(due_at)
    from perdure.hooks
    where namespace = ?2 and name = handled.value and priority = level.column1 and status = 'pending'
      and (batch_limit is null or batch_limit >= ?4){openable Row payload}
  ) as at
  from jsonb_each(?3) handled
  cross join (values (-1), (0), (1)) level
  union all
  select min(lease_expires_at)
  from perdure.hooks
  where namespace = ?2 and status = 'processing'
)

-- name: HookPurge
delete from perdure.attempts
where kind = 'hook' and id in (
  select id
  from perdure.hooks
  where status in ('completed', 'cancelled') and finished_at <= ?1 - ?2
  order by finished_at, id
  limit ?3
)
;
delete from perdure.hooks
where id in (
  select id
  from perdure.hooks
  where status in ('completed', 'cancelled') and finished_at <= ?1 - ?2
  order by finished_at, id
  limit ?3
)

-- name: HookPurgeDead
delete from perdure.attempts
where kind = 'hook' and id in (
  select id
  from perdure.hooks
  where status in ('failed', 'quarantined') and finished_at <= ?1 - ?2
  order by finished_at, id
  limit ?3
)
;
delete from perdure.hooks
where id in (
  select id
  from perdure.hooks
  where status in ('failed', 'quarantined') and finished_at <= ?1 - ?2
  order by finished_at, id
  limit ?3
)
