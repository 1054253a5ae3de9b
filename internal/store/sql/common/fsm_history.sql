-- The history of instances.

-- name: TransitionEdges
select i.version, t.step, t.next, count(*)
from (select id, version from perdure.instances where fsm = ? order by id desc limit ?) i
  join perdure.transitions t on t.instance_id = i.id
where t.next is not null
group by i.version, t.step, t.next
order by i.version, t.step, t.next

-- name: TransitionList
select seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at
from perdure.transitions
where instance_id = {uuid ?} and seq > ?
order by seq
limit ?
