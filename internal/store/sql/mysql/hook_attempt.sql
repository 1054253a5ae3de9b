-- Attempts of hooks, on MySQL. now is given by tests; otherwise it is null and the
-- server's clock decides.

-- name: HookAttempt
-- Attempts that failed. The leases are locked, so no other process records of these hooks.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = o.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  o.attempt, 'failed', o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', attempt int path '$[2]', error longtext path '$[3]', took bigint path '$[4]')) o

-- name: HookLost
-- What a lease held that is taken away: it is locked.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select 'hook', h.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'hook' and a.id = h.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  h.attempt + h.crashes + 1, ?1, ?2, l.worker, l.claimed_at, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from perdure.leases l
straight_join json_table(?5, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.hook_items h on h.id = o.id
where l.token = ?4

-- name: HookAttemptCap
-- Forgets all but the newest ones.
delete a
from (
  select b.id, max(b.seq) - 50 as seq
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.attempts b on b.kind = 'hook' and b.id = o.id and b.actor_type = '' and b.actor_id = ''
  group by b.id
) newest
straight_join perdure.attempts a on a.kind = 'hook' and a.id = newest.id and a.actor_type = '' and a.actor_id = '' and a.seq <= newest.seq
