-- The history of instances.

-- name: TransitionEdges
select i.version, t.step, t.next, count(*)
from (select id, version from perdure.instances where fsm = ? order by id desc limit ?) i
  join perdure.transitions t on t.instance_id = i.id
where t.next is not null
group by i.version, t.step, t.next
order by i.version, t.step, t.next
