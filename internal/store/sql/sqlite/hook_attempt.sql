-- Attempts of hooks, on SQLite.

-- name: HookAttempt
-- Attempts that failed.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', o.value->>0, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = o.value->>0), 0) + 1,
  o.value->>2, 'failed', o.value->>3, ?1, ?3 - (o.value->>4), ?3
from jsonb_each(?2) o

-- name: HookLost
-- What a lease held that is taken away.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', h.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = h.id), 0) + 1,
  h.attempt + h.crashes + 1, ?, ?, l.worker, l.claimed_at, ?
from perdure.leases l, perdure.hook_items h
where l.token = ? and h.id in (select value->>0 from jsonb_each(?))

-- name: HookAttemptCap
-- Forgets all but the newest ones.
delete from perdure.attempts
where kind = 'hook' and id in (select value->>0 from jsonb_each(?1))
  and seq <= (select max(b.seq) - 50 from perdure.attempts b where b.kind = 'hook' and b.id = perdure.attempts.id)
