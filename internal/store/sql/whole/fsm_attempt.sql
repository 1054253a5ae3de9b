-- Fsm attempt: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: InstanceLost
-- Records the attempts of items that a lease loses. The lease is locked.
insert into perdure.attempts (kind, id, seq, step, attempt, outcome, error, worker, began_at, ended_at)
select 'instance', {text i.id}, coalesce((select max(a.seq) from perdure.attempts a where a.kind = 'instance' and a.id = {text i.id}), 0) + 1,
  i.step, i.attempt + i.crashes + 1, {text ?}, {text ?}, l.worker, l.claimed_at, {now ?}
from perdure.leases l, perdure.instances i
where l.token = {uuid ?} and i.id {any uuid ?}
