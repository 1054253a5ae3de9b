-- Attempts of hooks, on PostgreSQL. now is given by tests; otherwise it is null and the
-- server's clock decides.

-- name: HookAttempt
-- Attempts that failed. The leases are locked, so no other process records of these hooks.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = o.id), 0) + 1,
  o.attempt, 'failed', o.error, ?, t.now - o.took * interval '1 microsecond', t.now
from unnest(?::text[], ?::text[], ?::integer[], ?::text[], ?::bigint[]) as o (id, step, attempt, error, took),
  (select coalesce(?::timestamptz, now()) as now) t

-- name: HookLost
-- What a lease held that is taken away: it is locked.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', h.id::text, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = h.id::text), 0) + 1,
  h.attempt + h.crashes + 1, ?::text, ?::text, l.worker, l.claimed_at, coalesce(?::timestamptz, now())
from perdure.leases l, perdure.hook_items h
where l.token = ?::uuid and h.id = any(?::uuid[])

-- name: HookAttemptCap
-- Forgets all but the newest ones.
delete from perdure.attempts a
where a.kind = 'hook' and a.id = any(?::text[])
  and a.seq <= (select max(b.seq) - 50 from perdure.attempts b where b.kind = 'hook' and b.id = a.id)
