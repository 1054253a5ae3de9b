-- Fsm manage: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: WaitClear
-- Also takes the lock that the delivery of signals takes.
update perdure.instances
set wait = null
where id {any uuid ?}

-- name: InterruptInsert
insert into perdure.interrupts (id, token)
values ({uuid ?}, {uuid ?})
on conflict do nothing

-- name: InstancesOver
-- Children of an unfinished parent are kept: the parent may still read them.
select {text f.id}
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.finished_at <= {now ?} - {us {bigint ?}} and f.status in ('done', 'stopped', 'cancelled')
  and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
    or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
order by f.finished_at
limit ?
{lock for update of f skip locked}

-- name: InstancesDead
select {text f.id}
from perdure.finished f
join perdure.instances i on i.id = f.id
where f.finished_at <= {now ?} - {us {bigint ?}} and f.status in ('failed', 'quarantined')
  and (i.parent_id is null or exists (select 1 from perdure.finished p where p.id = i.parent_id)
    or not exists (select 1 from perdure.instances p where p.id = i.parent_id))
order by f.finished_at
limit ?
{lock for update of f skip locked}

-- name: InstanceFinished
select f.status, coalesce({text i.parent_id}, ''), i.parent_id is not null
  and not exists (select 1 from perdure.finished p where p.id = i.parent_id)
  and exists (select 1 from perdure.instances p where p.id = i.parent_id)
from perdure.instances i
left join perdure.finished f on f.id = i.id
where i.id = {uuid ?}
