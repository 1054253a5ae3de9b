-- Server upcoming: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: UpcomingJoinTimeouts
select b.deadline_at, {text i.id}, i.fsm, 'wait for children ends'
from perdure.barriers b
join perdure.instances i on i.id = b.parent_id
where b.deadline_at > ? and b.deadline_at <= ?
order by b.deadline_at
limit ?

-- name: UpcomingDeadlines
select d.at, {text i.id}, i.fsm, 'deadline'
from perdure.deadlines d
join perdure.instances i on i.id = d.id
where d.at > ? and d.at <= ?
order by d.at
limit ?

-- name: UpcomingReady
select r.due_at, {text r.id}, i.fsm, case when i.attempt > 0 then 'attempt ' || (i.attempt + 1) || ' of step ' || i.step else 'step ' || i.step end
from perdure.ready r
join perdure.instances i on i.id = r.id
where r.queue = ? and r.suspect = {boolean ?} and r.priority = ? and r.due_at > ? and r.due_at <= ?
order by r.due_at, r.id
limit ?

-- name: CountDueReady
select count(*), min(s.due_at)
from (
  select due_at
  from perdure.ready
  where queue = ? and suspect = {boolean ?} and priority = ? and due_at > ? and due_at <= ?
  order by due_at
  limit ?
) s
