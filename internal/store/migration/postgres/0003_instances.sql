-- Durable state machines.
--
-- What is wide (identity, state) is written once per step; what is hot (due,
-- claimed, finished) lives in narrow tables of its own. A live instance is in
-- exactly one place: ready, a lease, waiting, barriers, partition_waiting or
-- unrouted. A finished one has a row in finished.

-- No column that changes is indexed, so every step is an update in place (HOT).
create table perdure.instances (
  id uuid primary key,
  fsm text not null,
  version integer not null,
  step text not null,
  state json not null,
  queue text not null,
  priority smallint not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  awaits json,
  keeps boolean not null default false,
  seen json,
  timed_out boolean not null default false,
  fanout integer not null default 0,
  dropped json,
  parent_id uuid,
  parent_fanout integer,
  ordinal integer,
  partition_key text,
  unique_name text,
  unique_key text,
  unique_scope smallint not null default 0,
  due_at timestamptz not null,
  deadline_at timestamptz,
  error text,
  trace text,
  created_at timestamptz not null
) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Serves a parent that reads its children, and the cascade of a cancel.
create index instances_parent_idx on perdure.instances (parent_id, parent_fanout, ordinal) where parent_id is not null;

-- Serves lists of one machine, newest first.
create index instances_fsm_idx on perdure.instances (fsm, id);

-- What may be run when it is due. Claiming deletes the row. Suspects are those
-- whose process was lost before: they lie apart, so that nobody walks over them.
create table perdure.ready (
  queue text not null,
  suspect boolean not null default false,
  priority smallint not null,
  due_at timestamptz not null,
  id uuid not null,
  primary key (queue, suspect, priority, due_at, id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- One row per batch of claims. Its row lock decides between an outcome and the
-- reaper: outcomes share it, the reaper and cancel take it alone. An instance
-- that was settled stays in ids; it is held by the newest lease that names it,
-- unless it is found in another place. That of a suspect has nobody else.
create table perdure.leases (
  token uuid primary key,
  seq bigint generated always as identity,
  worker text not null,
  queue text not null,
  alone boolean not null,
  expires_at timestamptz not null,
  ids uuid[] not null
) with (fillfactor = 50);

-- They do not become smaller.
alter table perdure.leases alter column ids set storage external;

-- Claims that were taken away from a lease that goes on: cancelled instances.
create table perdure.interrupts (
  id uuid not null,
  token uuid not null,
  primary key (token, id)
);

create table perdure.finished (
  id uuid primary key,
  status text not null check (status in ('done', 'failed', 'cancelled', 'quarantined')),
  result json,
  error text,
  finished_at timestamptz not null
);

-- Serves retention.
create index finished_at_idx on perdure.finished (finished_at);

-- Serves the list of dead letters.
create index finished_dead_idx on perdure.finished (id) where status in ('failed', 'quarantined');

-- Instances that wait for a signal.
create table perdure.waiting (
  id uuid primary key,
  names text[] not null,
  deadline_at timestamptz
);

-- Serves timeouts.
create index waiting_deadline_idx on perdure.waiting (deadline_at) where deadline_at is not null;

create table perdure.signals (
  seq bigint generated always as identity primary key,
  target_id uuid not null,
  name text not null,
  payload json not null,
  created_at timestamptz not null
);

-- Serves the inbox of an instance.
create index signals_target_idx on perdure.signals (target_id, seq);

-- The keys of signals that were delivered, remembered until the instance is
-- removed.
create table perdure.signal_keys (
  target_id uuid not null,
  name text not null,
  dedup_key text not null,
  primary key (target_id, name, dedup_key)
);

-- Parents that wait for the children of one fan-out.
create table perdure.barriers (
  parent_id uuid primary key,
  fanout integer not null,
  pending integer not null,
  until integer not null default 0,
  deadline_at timestamptz
) with (fillfactor = 50);

-- Serves the deadlines of joins.
create index barriers_deadline_idx on perdure.barriers (deadline_at) where deadline_at is not null;

-- One row for each partition key that has live instances: who is at its head,
-- and the number of the last in its queue. Its lock orders those who start.
create table perdure.partition_heads (
  key text primary key,
  head uuid not null,
  tail bigint not null default 0
) with (fillfactor = 50);

create table perdure.partition_waiting (
  key text not null,
  seq bigint not null,
  id uuid not null,
  primary key (key, seq)
);

-- Keys that are occupied. A row is removed when its instance leaves its scope.
create table perdure.uniques (
  name text not null,
  key text not null,
  id uuid not null,
  primary key (name, key)
);

-- Instances that must end by a time.
create table perdure.deadlines (
  at timestamptz not null,
  id uuid not null,
  primary key (at, id)
);

-- Instances of machines that the process which claimed them does not know.
create table perdure.unrouted (
  queue text not null,
  fsm text not null,
  version integer not null,
  id uuid not null,
  primary key (queue, fsm, version, id)
);

create table perdure.schedules (
  name text primary key,
  fsm text not null,
  version integer not null,
  spec json not null,
  next_at timestamptz,
  last_at timestamptz,
  paused boolean not null default false,
  updated_at timestamptz not null
);
