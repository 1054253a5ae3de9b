-- Fsm sweep: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: LeaseExpired
select {text token}, worker
from perdure.leases
where queue = ? and expires_at <= {now ?}
order by expires_at
limit ?
{lock for update skip locked}

-- name: InstanceRelease
-- Returns unstarted claims to the queue unchanged.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select queue, batch_limit is not null, priority, due_at, id
from perdure.instances
where id {any uuid ?}
