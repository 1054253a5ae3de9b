-- Hooks use the tables that instances have for what is due and what runs: ready, leases
-- and interrupts. A hook that waits is in ready, one that runs in a lease, and one that
-- has ended in hook_ends. perdure.hooks is a view of all of it.

alter table perdure.hooks rename to hooks_before;

-- One row for each hook. It changes only when an attempt fails.
create table perdure.hook_items (
  id uuid primary key,
  -- The id that the user chose. Null: the id is that of the row.
  key text unique,
  namespace text not null,
  name text not null,
  queue text not null,
  payload json not null,
  priority smallint not null,
  policy json not null,
  max_attempts integer not null,
  -- Attempts that failed.
  attempt integer not null default 0,
  crashes integer not null default 0,
  batch_limit integer,
  error text,
  unit_id text not null,
  trace text,
  created_at timestamptz not null,
  next_attempt_at timestamptz constraint hook_items_next_attempt_at_range check (next_attempt_at between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'),
  due_at timestamptz not null constraint hook_items_due_at_range check (due_at between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'),
  last_attempt_at timestamptz
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Serves lists, newest first.
create index hook_items_created_idx on perdure.hook_items (created_at, id);

-- The ends of hooks.
create table perdure.hook_ends (
  id uuid primary key,
  status text not null check (status in ('completed', 'failed', 'quarantined', 'cancelled')),
  error text,
  worker text,
  created_at timestamptz not null,
  began_at timestamptz,
  finished_at timestamptz not null
);

-- Serves retention, and the charts.
create index hook_ends_at_idx on perdure.hook_ends (finished_at) where status in ('completed', 'cancelled');

-- Serve the retention and the list of dead letters.
create index hook_ends_dead_at_idx on perdure.hook_ends (finished_at) where status in ('failed', 'quarantined');
create index hook_ends_dead_idx on perdure.hook_ends (created_at, id) where status in ('failed', 'quarantined');

-- An id that is a UUID stays the id of the row, unless an instance has it. The others get
-- ids in the order in which they are due.
insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, attempt, crashes, batch_limit, error, unit_id, trace,
  created_at, next_attempt_at, due_at, last_attempt_at)
select coalesce(kept, (prefix || lpad(to_hex(row_number() over (order by due_at, id)), 12, '0'))::uuid), case when kept is null then id end,
  namespace, name, 'hook' || chr(9) || namespace || chr(9) || name, payload, priority, policy, max_attempts, attempts - case when status = 'completed' then 1 else 0 end, crashes, batch_limit, error,
  unit_id, trace, created_at, next_attempt_at, case when status = 'processing' then greatest(due_at, lease_expires_at) else due_at end, last_attempt_at
from (
  select h.*, case when i.id is null then h.uuid end as kept
  from (
    select b.*, case when b.id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then b.id::uuid end as uuid
    from perdure.hooks_before b
  ) h
  left join perdure.instances i on i.id = h.uuid
) h, (select '0000' || substr(r, 1, 4) || '-' || substr(r, 5, 4) || '-7000-8000-' as prefix from (select gen_random_uuid()::text as r) random) ids;

insert into perdure.hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select i.id, b.status, b.error, b.worker, b.created_at, b.last_attempt_at, coalesce(b.finished_at, b.created_at)
from perdure.hooks_before b
join perdure.hook_items i on coalesce(i.key, i.id::text) = b.id
where b.status in ('completed', 'failed', 'quarantined', 'cancelled');

-- A hook that a process ran when the tables changed is due when its lease would have
-- ended: the process cannot record its outcome any more.
insert into perdure.ready (queue, suspect, priority, due_at, id)
select i.queue, i.batch_limit is not null, i.priority, i.due_at, i.id
from perdure.hooks_before b
join perdure.hook_items i on coalesce(i.key, i.id::text) = b.id
where b.status in ('pending', 'processing');

update perdure.attempts a
set id = i.id::text
from perdure.hook_items i
where a.kind = 'hook' and a.id = i.key;

drop table perdure.hooks_before;

create view perdure.hooks as
select coalesce(h.key, h.id::text) as id, h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'processing' else 'pending' end) as status,
  h.priority, h.policy, h.max_attempts, h.attempt + case when e.status = 'completed' then 1 else 0 end as attempts, h.crashes, h.batch_limit, coalesce(e.error, h.error) as error,
  h.unit_id, h.trace, h.created_at, case when e.id is null then h.next_attempt_at end as next_attempt_at, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1), h.last_attempt_at) as last_attempt_at,
  e.finished_at,
  coalesce(e.worker, (select l.worker from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1)) as worker,
  (select l.expires_at from perdure.leases l where e.id is null and r.id is null and h.id = any(l.ids) order by l.seq desc limit 1) as lease_expires_at
from perdure.hook_items h
left join perdure.hook_ends e on e.id = h.id
left join perdure.ready r on r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id;
