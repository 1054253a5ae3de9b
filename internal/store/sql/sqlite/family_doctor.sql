-- The invariants of items of one kind, on SQLite. See family.sql for the marks. Each
-- statement returns the violations of its rule: the id of an item, and its name or a
-- description of the problem.

-- name: {Kind}DoctorPlace
-- An item is in exactly one place: ready, finished, or in a lease that still owns it.
select {piece Public}, coalesce(group_concat(p.place, ', ' order by p.place), 'nowhere')
from perdure.{items} h
left join (
  select id, 'ready' as place from perdure.ready where queue > '{word}' || char(9) and queue < '{word}' || char(10)
  union all
  {piece Ends}
) p on p.id = h.id
group by h.id
having count(p.place) > 1 or count(p.place) = 0 and not exists (
  select 1
  from perdure.leases l
  where h.id in (select value from json_each(l.ids)) and not exists (select 1 from perdure.interrupts x where x.id = h.id and x.token = l.token)
)

-- name: {Kind}DoctorReady
-- A ready row has the queue, priority and due time of its item.
select {piece Public}, 'is ready elsewhere than its queue, batch limit, priority and due time say'
from perdure.ready r
join perdure.{items} h on h.id = r.id
where r.queue > '{word}' || char(9) and r.queue < '{word}' || char(10) and (r.queue, r.suspect, r.priority, r.due_at) is not (h.queue, h.batch_limit is not null, h.priority, h.due_at)

-- name: {Kind}DoctorStuck
-- A claim that expired long ago was returned by some process.
select {piece Public}, {piece Name}
from perdure.leases l, json_each(l.ids) held
join perdure.{items} h on h.id = held.value
where l.queue >= '{word}' || char(9) and l.queue < '{word}' || char(10) and l.expires_at < ?
  and {piece Live}
  and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  and not exists (select 1 from perdure.leases newer, json_each(newer.ids) n where newer.seq > l.seq and n.value = h.id)
