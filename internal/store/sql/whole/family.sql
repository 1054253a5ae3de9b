-- Family: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: {Kind}Release
-- Returns items to their lanes, at the due times in their rows.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, batch_limit is not null, priority, due_at, id
from perdure.{items}
where id {any uuid ?}{piece Released}

-- name: {Kind}RetryChange
update perdure.{items}
set policy = {json ?}, max_attempts = ?
where queue = ? and id > {uuid ?} and id <= {uuid ?}

-- name: {Kind}Lost
-- Records the attempts of items that a lease loses. The lease is locked.
insert into perdure.attempts (kind, id, seq, attempt, outcome, error, worker, began_at, ended_at)
select '{word}', {text h.id}, coalesce((select max(a.seq) from perdure.attempts a where a.kind = '{word}' and a.id = {text h.id}), 0) + 1,
  h.attempt + h.crashes + 1, {text ?}, {text ?}, l.worker, l.claimed_at, {now ?}
from perdure.leases l, perdure.{items} h
where l.token = {uuid ?} and h.id {any uuid ?}
