-- Durable state machines.
--
-- What is wide (identity, state) is written once per step; what is hot (due,
-- claimed, finished) lives in narrow tables of its own. A live instance is in
-- exactly one place: ready, a lease, waiting, barriers, partition_waiting or
-- unrouted. A finished one has a row in finished.

create table perdure_instances (
  id text primary key,
  fsm text not null,
  version integer not null,
  step text not null,
  state text not null,
  queue text not null,
  priority integer not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  awaits text,
  keeps integer not null default 0,
  seen text,
  timed_out integer not null default 0,
  fanout integer not null default 0,
  dropped text,
  parent_id text,
  parent_fanout integer,
  ordinal integer,
  partition_key text,
  unique_name text,
  unique_key text,
  unique_scope integer not null default 0,
  due_at integer not null,
  deadline_at integer,
  error text,
  trace text,
  created_at integer not null
) strict;

-- Serves a parent that reads its children, and the cascade of a cancel.
create index perdure_instances_parent_idx on perdure_instances (parent_id, parent_fanout, ordinal) where parent_id is not null;

-- Serves lists of one machine, newest first.
create index perdure_instances_fsm_idx on perdure_instances (fsm, id);

-- What may be run when it is due. Claiming deletes the row. Suspects are those
-- whose process was lost before: they lie apart, so that nobody walks over them.
create table perdure_ready (
  queue text not null,
  suspect integer not null default 0,
  priority integer not null,
  due_at integer not null,
  id text not null,
  primary key (queue, suspect, priority, due_at, id)
) strict;

-- One row per batch of claims. An instance that was settled stays in ids; it is
-- held by the newest lease that names it, unless it is found in another place.
-- That of a suspect has nobody else.
create table perdure_leases (
  seq integer primary key autoincrement,
  token text not null unique,
  worker text not null,
  queue text not null,
  alone integer not null,
  expires_at integer not null,
  ids text not null
) strict;

-- Claims that were taken away from a lease that goes on: cancelled instances.
create table perdure_interrupts (
  id text not null,
  token text not null,
  primary key (token, id)
) strict;

create table perdure_finished (
  id text primary key,
  status text not null check (status in ('done', 'failed', 'cancelled', 'quarantined')),
  result text,
  error text,
  finished_at integer not null
) strict;

-- Serves retention.
create index perdure_finished_at_idx on perdure_finished (finished_at);

-- Serves the list of dead letters.
create index perdure_finished_dead_idx on perdure_finished (id) where status in ('failed', 'quarantined');

-- Instances that wait for a signal.
create table perdure_waiting (
  id text primary key,
  names text not null,
  deadline_at integer
) strict;

-- Serves timeouts.
create index perdure_waiting_deadline_idx on perdure_waiting (deadline_at) where deadline_at is not null;

create table perdure_signals (
  seq integer primary key autoincrement,
  target_id text not null,
  name text not null,
  payload text not null,
  created_at integer not null
) strict;

-- Serves the inbox of an instance.
create index perdure_signals_target_idx on perdure_signals (target_id, seq);

-- The keys of signals that were delivered, remembered until the instance is
-- removed.
create table perdure_signal_keys (
  target_id text not null,
  name text not null,
  dedup_key text not null,
  primary key (target_id, name, dedup_key)
) strict;

-- Parents that wait for the children of one fan-out.
create table perdure_barriers (
  parent_id text primary key,
  fanout integer not null,
  pending integer not null,
  until integer not null default 0,
  deadline_at integer
) strict;

-- Serves the deadlines of joins.
create index perdure_barriers_deadline_idx on perdure_barriers (deadline_at) where deadline_at is not null;

-- One row for each partition key that has live instances: who is at its head,
-- and the number of the last in its queue. Its lock orders those who start.
create table perdure_partition_heads (
  key text primary key,
  head text not null,
  tail integer not null default 0
) strict;

create table perdure_partition_waiting (
  key text not null,
  seq integer not null,
  id text not null,
  primary key (key, seq)
) strict;

-- Keys that are occupied. A row is removed when its instance leaves its scope.
create table perdure_uniques (
  name text not null,
  key text not null,
  id text not null,
  primary key (name, key)
) strict;

-- Instances that must end by a time.
create table perdure_deadlines (
  at integer not null,
  id text not null,
  primary key (at, id)
) strict;

-- Instances of machines that the process which claimed them does not know.
create table perdure_unrouted (
  queue text not null,
  fsm text not null,
  version integer not null,
  id text not null,
  primary key (queue, fsm, version, id)
) strict;

create table perdure_schedules (
  name text primary key,
  fsm text not null,
  version integer not null,
  spec text not null,
  next_at integer,
  last_at integer,
  paused integer not null default 0,
  updated_at integer not null
) strict;
