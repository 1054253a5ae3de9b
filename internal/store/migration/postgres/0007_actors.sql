-- Actors: state machines that live in the database. The row of an actor is what
-- everybody locks who moves it. No indexed column changes while it lives, so
-- that its updates stay in place.

create table perdure.actors (
  type text not null,
  id text not null,
  -- Differs between two actors that had the same name one after the other.
  incarnation text not null,
  status text not null check (status in ('active', 'done', 'error', 'stopped', 'quarantined')),
  -- The version of the machine's definition.
  machine bigint not null,
  -- How many steps it has taken.
  sequence bigint not null,
  value json,
  -- The active states by their paths, each between two line feeds.
  states text not null,
  origin text not null check (origin in ('spawn', 'import', 'fork')),
  caller_kind text not null check (caller_kind in ('client', 'service', 'system')),
  caller_id text not null,
  input json,
  reason text,
  created_at timestamptz not null,
  -- The time of its last step, which never goes back.
  updated_at timestamptz not null,
  primary key (type, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Serve lists, newest first.
create index actors_created_idx on perdure.actors (created_at, type, id);
create index actors_type_idx on perdure.actors (type, created_at, id);

-- Serves the list of those that need somebody.
create index actors_dead_idx on perdure.actors (created_at, type, id) where status in ('error', 'quarantined');

create table perdure.snapshots (
  actor_type text not null,
  actor_id text not null,
  sequence bigint not null,
  snapshot json not null,
  checksum text not null,
  primary key (actor_type, actor_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Complete states at certain steps, timers included. With the log after it, the
-- oldest one gives every later state again.
create table perdure.checkpoints (
  actor_type text not null,
  actor_id text not null,
  sequence bigint not null,
  machine bigint not null,
  snapshot json not null,
  timers json not null,
  checksum text not null,
  primary key (actor_type, actor_id, sequence)
);

create table perdure.actor_log (
  actor_type text not null,
  actor_id text not null,
  sequence bigint not null,
  kind text not null,
  event json,
  caller_kind text,
  caller_id text,
  -- Of timers and results: the actor in the tree that they were for.
  path text,
  generation bigint,
  key text,
  -- What it emitted and logged.
  said json,
  value json,
  -- Of the snapshot after the step.
  checksum text not null,
  -- The time that the machine saw, and that of the record.
  at timestamptz not null,
  recorded_at timestamptz not null,
  primary key (actor_type, actor_id, sequence)
);

-- The idempotency keys of events, and the step that each one led to.
create table perdure.actor_keys (
  actor_type text not null,
  actor_id text not null,
  key text not null,
  sequence bigint not null,
  created_at timestamptz not null,
  primary key (actor_type, actor_id, key)
);

create index actor_keys_created_idx on perdure.actor_keys (created_at);

-- Machines that are data. A name's versions are numbered from 1.
create table perdure.machines (
  name text not null,
  version bigint not null,
  document json not null,
  options json not null,
  checksum text not null,
  created_at timestamptz not null,
  primary key (name, version)
);

-- The actors that were imported from an earlier system. It stays when they are
-- deleted: nothing is imported twice.
create table perdure.imports (
  actor_type text not null,
  actor_id text not null,
  imported_at timestamptz not null,
  primary key (actor_type, actor_id)
);
