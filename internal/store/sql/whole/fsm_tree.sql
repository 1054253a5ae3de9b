-- Fsm tree: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: TreeTake
-- Returns rows of any tree. The last two columns: the parent exists and is unfinished; an
-- earlier row of the same parent must be handled first.
select t.seq, {text t.parent_id}, t.first_fanout, t.last_fanout, t.kind, {text t.root_id}, t.reason, t.after_fanout is not null,
  exists (select 1 from perdure.instances p where p.id = t.parent_id) and not exists (select 1 from perdure.finished f where f.id = t.parent_id),
  exists (select 1 from perdure.tree_ends x where x.parent_id = t.parent_id and x.seq < t.seq)
from perdure.tree_ends t
order by t.seq
limit ?
{lock for update of t skip locked}

-- name: TreeTakeOf
-- Returns the rows of one tree, and the rows of other trees that must be handled before
-- them.
select t.seq, {text t.parent_id}, t.first_fanout, t.last_fanout, t.kind, {text t.root_id}, t.reason, t.after_fanout is not null,
  exists (select 1 from perdure.instances p where p.id = t.parent_id) and not exists (select 1 from perdure.finished f where f.id = t.parent_id),
  exists (select 1 from perdure.tree_ends x where x.parent_id = t.parent_id and x.seq < t.seq)
from perdure.tree_ends t
where t.root_id = {uuid ?1} or t.parent_id in (select x.parent_id from perdure.tree_ends x where x.root_id = {uuid ?1})
order by t.seq
limit ?2
{lock for update of t skip locked}

-- name: TreeDelete
delete from perdure.tree_ends
where seq {any bigint ?}

-- name: EndsDue
-- Returns a row if a deadline has passed, or a tree waits for a process.
select 1
from (
  (select 1 from perdure.deadlines where at <= {now ?1} limit 1)
  union all
  (select 1 from perdure.tree_ends where due_at <= {now ?1} limit 1)
) due
limit 1

-- name: InstanceEndsMany
-- Returns the columns that are needed to finish instances, which are locked.
select {text i.id}, i.step, i.attempt, i.crashes, i.fanout, {text i.parent_id}, i.parent_fanout, i.partition_key, i.unique_name, i.unique_key, i.unique_scope, i.deadline_at,
  i.queue, i.awaits, i.seen, i.cancel_reason, d.cancel_step
from perdure.instances i
left join perdure.definitions d on d.fsm = i.fsm and d.version = i.version
where i.id {any uuid ?}

-- name: BarrierSeeMany
select {text parent_id}
from perdure.barriers
where parent_id {any uuid ?}

-- name: FinishedMany
select {text id}
from perdure.finished
where id {any uuid ?}
