-- Actors: state machines that live in the database.

create table perdure_actors (
  type text not null,
  id text not null,
  -- Differs between two actors that had the same name one after the other.
  incarnation text not null,
  status text not null check (status in ('active', 'done', 'error', 'stopped', 'quarantined')),
  -- The version of the machine's definition.
  machine integer not null,
  -- How many steps it has taken.
  sequence integer not null,
  value text,
  -- The active states by their paths, each between two line feeds.
  states text not null,
  origin text not null check (origin in ('spawn', 'import', 'fork')),
  caller_kind text not null check (caller_kind in ('client', 'service', 'system')),
  caller_id text not null,
  input text,
  reason text,
  created_at integer not null,
  -- The time of its last step, which never goes back.
  updated_at integer not null,
  primary key (type, id)
) strict;

-- Serve lists, newest first.
create index perdure_actors_created_idx on perdure_actors (created_at, type, id);
create index perdure_actors_type_idx on perdure_actors (type, created_at, id);

-- Serves the list of those that need somebody.
create index perdure_actors_dead_idx on perdure_actors (created_at, type, id) where status in ('error', 'quarantined');

create table perdure_snapshots (
  actor_type text not null,
  actor_id text not null,
  sequence integer not null,
  snapshot text not null,
  checksum text not null,
  primary key (actor_type, actor_id)
) strict;

-- Complete states at certain steps, timers included. With the log after it, the
-- oldest one gives every later state again.
create table perdure_checkpoints (
  actor_type text not null,
  actor_id text not null,
  sequence integer not null,
  machine integer not null,
  snapshot text not null,
  timers text not null,
  checksum text not null,
  primary key (actor_type, actor_id, sequence)
) strict;

create table perdure_actor_log (
  actor_type text not null,
  actor_id text not null,
  sequence integer not null,
  kind text not null,
  event text,
  caller_kind text,
  caller_id text,
  -- Of timers and results: the actor in the tree that they were for.
  path text,
  generation integer,
  key text,
  -- What it emitted and logged.
  said text,
  value text,
  -- Of the snapshot after the step.
  checksum text not null,
  -- The time that the machine saw, and that of the record.
  at integer not null,
  recorded_at integer not null,
  primary key (actor_type, actor_id, sequence)
) strict, without rowid;

-- The idempotency keys of events, and the step that each one led to.
create table perdure_actor_keys (
  actor_type text not null,
  actor_id text not null,
  key text not null,
  sequence integer not null,
  created_at integer not null,
  primary key (actor_type, actor_id, key)
) strict, without rowid;

create index perdure_actor_keys_created_idx on perdure_actor_keys (created_at);

-- Machines that are data. A name's versions are numbered from 1.
create table perdure_machines (
  name text not null,
  version integer not null,
  document text not null,
  options text not null,
  checksum text not null,
  created_at integer not null,
  primary key (name, version)
) strict;

-- The actors that were imported from an earlier system. It stays when they are
-- deleted: nothing is imported twice.
create table perdure_imports (
  actor_type text not null,
  actor_id text not null,
  imported_at integer not null,
  primary key (actor_type, actor_id)
) strict;
