-- Reopening the children of instances that were retried.

-- name: TreeClosed
-- The children that the end of their parent has ended, in the order of the passes.
select t.seq, c.id::text, c.parent_fanout, c.ordinal
from perdure.tree_ends t
cross join lateral (
  select i.id, i.parent_fanout, i.ordinal
  from perdure.instances i
  where i.parent_id = t.parent_id
    and (i.parent_fanout, i.ordinal) > (coalesce(t.after_fanout, -2147483647), coalesce(t.after_ordinal, -1))
    and abs(i.parent_fanout) between t.first_fanout and t.last_fanout
    and (select f.ended_by from perdure.finished f where f.id = i.id limit 1) = t.parent_id
  order by i.parent_fanout, i.ordinal
  limit $2
) c
where t.seq = any($1::bigint[])
order by t.seq, c.parent_fanout, c.ordinal
limit $2

-- name: BarrierRecount
-- Counts the live children at barriers that are not counted yet. The barriers are
-- locked, and this is a statement of its own: a child that ends later waits for the
-- lock, and every child that ended before is seen.
update perdure.barriers b
set pending = (
  select count(*)
  from perdure.instances i
  where i.parent_id = b.parent_id and i.parent_fanout = b.fanout and not exists (select 1 from perdure.finished f where f.id = i.id)
)
where b.parent_id = any(?::uuid[]) and b.pending > 500000000

-- name: InstanceReset
-- The end never was. The instance has all attempts before it and what is left of its
-- deadline. A parent that has counted its end does not count it again: such a parent
-- still finds it by the negative number.
update perdure.instances i
set attempt = 0, failures = 0, crashes = 0, batch_limit = null, parent_fanout = case when f.ended_by is null then -abs(i.parent_fanout) else i.parent_fanout end,
  deadline_at = case when i.deadline_at > f.finished_at then t.now + (i.deadline_at - f.finished_at) end, due_at = greatest(i.due_at, t.now)
from perdure.finished f, (select coalesce(?::timestamptz, now()) as now) t
where i.id = any(?::uuid[]) and f.id = i.id
