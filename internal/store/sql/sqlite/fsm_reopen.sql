-- Reopening the children of retried instances, on SQLite.

-- name: TreeClosed
-- Returns the children that finished because their parent did, in the order of the
-- passes.
select t.seq, i.id, i.parent_fanout, i.ordinal
from perdure.tree_ends t
join perdure.instances i on i.parent_id = t.parent_id
where t.seq in (select value->>0 from jsonb_each(?1))
  and (i.parent_fanout, i.ordinal) > (coalesce(t.after_fanout, -2147483647), coalesce(t.after_ordinal, -1))
  and abs(i.parent_fanout) between t.first_fanout and t.last_fanout
  and (select f.ended_by from perdure.finished f where f.id = i.id) = t.parent_id
order by t.seq, i.parent_fanout, i.ordinal
limit ?2

-- name: BarrierRecount
-- Counts the unfinished children of barriers that are not counted yet.
update perdure.barriers
set pending = (
  select count(*)
  from perdure.instances i
  where i.parent_id = perdure.barriers.parent_id and i.parent_fanout = perdure.barriers.fanout
    and not exists (select 1 from perdure.finished f where f.id = i.id)
)
where parent_id in (select value->>0 from jsonb_each(?1)) and pending > 500000000

-- name: InstanceReset
-- Undoes the end of an instance. Its attempts are reset, and it gets the rest of its
-- deadline. A parent that has counted its end does not count it again. Such a parent
-- still finds the instance by the negative number of the fan-out.
update perdure.instances
set attempt = 0, failures = 0, crashes = 0, batch_limit = null, parent_fanout = iif(f.ended_by is null, -abs(parent_fanout), parent_fanout),
  deadline_at = case when deadline_at > f.finished_at then ?1 + deadline_at - f.finished_at end, due_at = max(due_at, ?1)
from perdure.finished f
where perdure.instances.id in (select value->>0 from jsonb_each(?2)) and f.id = perdure.instances.id
