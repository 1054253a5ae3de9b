-- Reopening the children of retried instances.

-- name: TreeClosed
-- Returns the children that finished because their parent did, in the order of the
-- passes.
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
-- Counts the unfinished children of barriers that are not counted yet. The barriers
-- are locked before, by a separate statement. A child that finishes later waits for
-- the lock, and this statement sees every child that finished before.
update perdure.barriers b
set pending = (
  select count(*)
  from perdure.instances i
  where i.parent_id = b.parent_id and i.parent_fanout = b.fanout and not exists (select 1 from perdure.finished f where f.id = i.id)
)
where b.parent_id = any(?::uuid[]) and b.pending > 500000000

-- name: InstanceReset
-- Undoes the end of an instance. Its attempts are reset, and it gets the rest of its
-- deadline. A parent that has counted its end does not count it again. Such a parent
-- still finds the instance by the negative number of the fan-out.
update perdure.instances i
set attempt = 0, failures = 0, crashes = 0, batch_limit = null, parent_fanout = case when f.ended_by is null then -abs(i.parent_fanout) else i.parent_fanout end,
  deadline_at = case when i.deadline_at > f.finished_at then t.now + (i.deadline_at - f.finished_at) end, due_at = greatest(i.due_at, t.now)
from perdure.finished f, (select coalesce(?::timestamptz, now()) as now) t
where i.id = any(?::uuid[]) and f.id = i.id
