-- The server: requests that must not be done twice, and the processes that run.

-- One row for each Idempotency-Key of a principal. It is committed with what the
-- request did, so it is there exactly if that is.
create table perdure.idempotency (
  principal text not null,
  key text not null,
  fingerprint text not null,
  response json,
  created_at timestamptz not null,
  primary key (principal, key)
);

-- Serves the removal of old keys.
create index idempotency_created_idx on perdure.idempotency (created_at);

create table perdure.nodes (
  id text primary key,
  host text not null,
  pid integer not null,
  version text not null,
  roles json not null,
  work json not null,
  -- How much it ran when it was last seen: [{"kind": …, "queue": …, "running": …}].
  running json not null,
  draining boolean not null default false,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

-- What was finished in each interval, and what was due at its end, for the charts: written once, by whichever
-- process is first.
create table perdure.samples (
  kind text not null,
  at timestamptz not null,
  finished integer not null,
  failed integer not null,
  due integer not null,
  primary key (kind, at)
);

-- How long work waited from its due time until it began, in each interval and by each process: how many waits were
-- in each bucket of a histogram.
create table perdure.waits (
  at timestamptz not null,
  node text not null,
  buckets json not null,
  primary key (at, node)
);

-- Serves the list of cancelled instances.
create index finished_cancelled_idx on perdure.finished (id) where status = 'cancelled';
