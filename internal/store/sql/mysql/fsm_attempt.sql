-- Attempts of steps, on MySQL. now is given by tests; otherwise it is null and the server's
-- clock decides.

-- name: InstanceAttempt
-- Steps that failed. The leases are locked, so no other process records of these instances.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', o.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = o.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  o.step, o.attempt, 'failed', o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', step varchar(128) path '$[1]', attempt int path '$[2]', error longtext path '$[3]', took bigint path '$[4]')) o

-- name: InstanceLost
-- What a lease held that is taken away: it is locked.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', i.id, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = i.id and a.actor_type = '' and a.actor_id = ''), 0) + 1,
  i.step, i.attempt + i.crashes + 1, ?1, ?2, l.worker, l.claimed_at, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from perdure.leases l
straight_join json_table(?5, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
where l.token = ?4

-- name: InstanceAttemptCap
-- Forgets all but the newest ones.
delete a
from (
  select b.id, max(b.seq) - 50 as seq
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  straight_join perdure.attempts b force index (primary) on b.kind = 'instance' and b.id = o.id and b.actor_type = '' and b.actor_id = ''
  group by b.id
) newest
straight_join perdure.attempts a force index (primary) on a.kind = 'instance' and a.id = newest.id and a.actor_type = '' and a.actor_id = '' and a.seq <= newest.seq

-- name: InstanceRunning
-- Who has an instance that runs, and since when.
select worker, claimed_at
from perdure.leases
where locate(?1, ids) > 0
order by seq desc
limit 1
