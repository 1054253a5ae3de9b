-- Attempts of alarms of users, on SQLite.

-- name: AlarmAttempt
-- Records an attempt that failed, while the claim is held.
insert into perdure.attempts (kind, id, actor_type, actor_id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'alarm', l.alarm_id, l.actor_type, l.actor_id,
  coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'alarm' and a.id = l.alarm_id and a.actor_type = l.actor_type and a.actor_id = l.actor_id), 0) + 1,
  l.attempts + l.crashes + 1, 'failed', ?, l.worker, l.last_attempt_at, ?
from perdure.alarms l
where l.kind = 'custom' and l.actor_type = ? and l.actor_id = ? and l.alarm_id = ? and l.token = ? and coalesce(l.generation, 0) = ?

-- name: AlarmLost
-- Records the attempt of a claim that has just been returned.
insert into perdure.attempts (kind, id, actor_type, actor_id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'alarm', l.alarm_id, l.actor_type, l.actor_id,
  coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'alarm' and a.id = l.alarm_id and a.actor_type = l.actor_type and a.actor_id = l.actor_id), 0) + 1,
  l.attempts + l.crashes, 'lost', l.error, l.worker, l.last_attempt_at, ?
from perdure.alarms l
where l.kind = 'custom' and l.actor_type = ? and l.actor_id = ? and l.alarm_id = ?

-- name: AlarmAttemptCopy
-- A dead letter of a tick has the attempts of the tick, while the claim is held.
insert into perdure.attempts (kind, id, actor_type, actor_id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'alarm', ?, t.actor_type, t.actor_id, t.seq, t.attempt, t.outcome, t.error, t.worker, t.began_at, t.ended_at
from (
  select a.actor_type, a.actor_id, a.seq, a.attempt, a.outcome, a.error, a.worker, a.began_at, a.ended_at
  from perdure.alarms l
  join perdure.attempts a on a.kind = 'alarm' and a.id = l.alarm_id and a.actor_type = l.actor_type and a.actor_id = l.actor_id
  where l.kind = 'custom' and l.actor_type = ? and l.actor_id = ? and l.alarm_id = ? and l.token = ? and coalesce(l.generation, 0) = ?
  order by a.seq desc
  limit ?
) t
where true
on conflict do nothing
