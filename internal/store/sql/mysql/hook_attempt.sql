-- Attempts of hooks, as they are told in time. now is given by tests; otherwise it
-- is null and the server's clock decides.

-- name: HookAttempt
-- Records an attempt that does not succeed, while the claim is held. Without a token
-- it is that of whoever has the claim. The row is locked, so that the outcome that
-- follows finds it as it is.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', h.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = h.id), 0) + 1,
  h.attempts + h.crashes + 1, ?, ?, h.worker, h.last_attempt_at, coalesce(cast(? as datetime(6)), utc_timestamp(6))
from perdure.hooks h
where h.id = ? and h.token = coalesce(?, h.token)
for update

-- name: HookLost
-- Records the attempt of a claim that has just been returned.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', h.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = h.id), 0) + 1,
  h.attempts + h.crashes, 'lost', h.error, h.worker, h.last_attempt_at, coalesce(cast(? as datetime(6)), utc_timestamp(6))
from perdure.hooks h
where h.id = ?
