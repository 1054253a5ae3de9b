-- Hooks use the tables that instances have for what is due and what runs: ready, leases
-- and interrupts. A hook that waits is in ready, one that runs in a lease, and one that
-- has ended in hook_ends. perdure_hooks is a view of all of it.

alter table perdure_hooks rename to perdure_hooks_before;

-- One row for each hook. It changes only when an attempt fails.
create table perdure_hook_items (
  id text primary key,
  -- The id that the user chose. Null: the id is that of the row.
  key text unique,
  namespace text not null,
  name text not null,
  queue text not null,
  payload text not null,
  priority integer not null,
  policy text not null,
  max_attempts integer not null,
  -- Attempts that failed.
  attempt integer not null default 0,
  crashes integer not null default 0,
  batch_limit integer,
  error text,
  unit_id text not null,
  trace text,
  created_at integer not null,
  next_attempt_at integer,
  due_at integer not null,
  last_attempt_at integer
) strict;

-- Serves lists, newest first.
create index perdure_hook_items_created_idx on perdure_hook_items (created_at, id);

-- The ends of hooks.
create table perdure_hook_ends (
  id text primary key,
  status text not null check (status in ('completed', 'failed', 'quarantined', 'cancelled')),
  error text,
  worker text,
  created_at integer not null,
  began_at integer,
  finished_at integer not null
) strict;

-- Serves retention, and the charts.
create index perdure_hook_ends_at_idx on perdure_hook_ends (finished_at) where status in ('completed', 'cancelled');

-- Serve the retention and the list of dead letters.
create index perdure_hook_ends_dead_at_idx on perdure_hook_ends (finished_at) where status in ('failed', 'quarantined');
create index perdure_hook_ends_dead_idx on perdure_hook_ends (created_at, id) where status in ('failed', 'quarantined');

-- An id that is a UUID stays the id of the row, unless an instance has it. The others get
-- ids in the order in which they are due.
insert into perdure_hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, attempt, crashes, batch_limit, error, unit_id, trace,
  created_at, next_attempt_at, due_at, last_attempt_at)
select coalesce(kept, ids.prefix || printf('%012x', row_number() over (order by due_at, id))), case when kept is null then id end,
  namespace, name, 'hook' || char(9) || namespace || char(9) || name, payload, priority, policy, max_attempts, attempts - (status = 'completed'), crashes, batch_limit, error,
  unit_id, trace, created_at, next_attempt_at, case when status = 'processing' then max(due_at, lease_expires_at) else due_at end, last_attempt_at
from (
  select h.*, case
    when h.id glob '????????-????-????-????-????????????' and h.id not glob '*[^-0-9a-f]*'
      and not exists (select 1 from perdure_instances i where i.id = h.id) then h.id
  end as kept
  from perdure_hooks_before h
) h, (select '0000' || substr(r, 1, 4) || '-' || substr(r, 5, 4) || '-7000-8000-' as prefix from (select lower(hex(randomblob(4))) as r)) ids;

insert into perdure_hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select i.id, b.status, b.error, b.worker, b.created_at, b.last_attempt_at, coalesce(b.finished_at, b.created_at)
from perdure_hook_items i
join perdure_hooks_before b on b.id = coalesce(i.key, i.id)
where b.status in ('completed', 'failed', 'quarantined', 'cancelled');

-- A hook that a process ran when the tables changed is due when its lease would have
-- ended: the process cannot record its outcome any more.
insert into perdure_ready (queue, suspect, priority, due_at, id)
select i.queue, i.batch_limit is not null, i.priority, i.due_at, i.id
from perdure_hook_items i
join perdure_hooks_before b on b.id = coalesce(i.key, i.id)
where b.status in ('pending', 'processing');

update perdure_attempts
set id = (select i.id from perdure_hook_items i where i.key = perdure_attempts.id)
where kind = 'hook' and exists (select 1 from perdure_hook_items i where i.key = perdure_attempts.id);

drop table perdure_hooks_before;

create view perdure_hooks as
select coalesce(h.key, h.id) as id, h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'processing' else 'pending' end) as status,
  h.priority, h.policy, h.max_attempts, h.attempt + coalesce(e.status = 'completed', 0) as attempts, h.crashes, h.batch_limit, coalesce(e.error, h.error) as error,
  h.unit_id, h.trace, h.created_at, case when e.id is null then h.next_attempt_at end as next_attempt_at, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure_leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1), h.last_attempt_at) as last_attempt_at,
  e.finished_at,
  coalesce(e.worker, (select l.worker from perdure_leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1)) as worker,
  (select l.expires_at from perdure_leases l where e.id is null and r.id is null and h.id in (select value from json_each(l.ids)) order by l.seq desc limit 1) as lease_expires_at
from perdure_hook_items h
left join perdure_hook_ends e on e.id = h.id
left join perdure_ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id;
