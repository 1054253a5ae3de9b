-- The server: requests that must not be done twice, and the processes that run.

-- One row for each Idempotency-Key of a principal. It is committed with what the
-- request did, so it is there exactly if that is.
create table perdure_idempotency (
  principal text not null,
  key text not null,
  fingerprint text not null,
  response text,
  created_at integer not null,
  primary key (principal, key)
) strict, without rowid;

-- Serves the removal of old keys.
create index perdure_idempotency_created_idx on perdure_idempotency (created_at);

create table perdure_nodes (
  id text primary key,
  host text not null,
  pid integer not null,
  version text not null,
  roles text not null,
  work text not null,
  -- How much it ran when it was last seen: [{"kind": …, "queue": …, "running": …}].
  running text not null,
  draining integer not null default 0,
  started_at integer not null,
  seen_at integer not null
) strict, without rowid;

-- What was finished in each interval, and what was due at its end, for the charts: written once, by whichever
-- process is first.
create table perdure_samples (
  kind text not null,
  at integer not null,
  finished integer not null,
  failed integer not null,
  due integer not null,
  primary key (kind, at)
) strict, without rowid;

-- How long work waited from its due time until it began, in each interval and by each process: how many waits were
-- in each bucket of a histogram.
create table perdure_waits (
  at integer not null,
  node text not null,
  buckets text not null,
  primary key (at, node)
) strict, without rowid;

-- Serves the list of cancelled instances.
create index perdure_finished_cancelled_idx on perdure_finished (id) where status = 'cancelled';
