-- Durable hooks: effects that run after commit, at a time, with retries.
-- fillfactor: claiming and finishing update the row in place where they can.

create table perdure.hooks (
  id text primary key,
  namespace text not null,
  name text not null,
  payload json not null,
  status text not null default 'pending'
    check (status in ('pending', 'processing', 'completed', 'failed', 'quarantined', 'cancelled')),
  priority smallint not null default 0,
  policy json not null,
  max_attempts integer not null,
  attempts integer not null default 0,
  crashes integer not null default 0,
  error text,
  unit_id text not null,
  trace text,
  created_at timestamptz not null,
  next_attempt_at timestamptz,
  due_at timestamptz not null,
  last_attempt_at timestamptz,
  finished_at timestamptz,
  worker text,
  token text,
  lease_expires_at timestamptz,
  check ((status = 'processing') = (token is not null)),
  check ((status = 'processing') = (lease_expires_at is not null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Serves the claim: the due rows of one name and priority, oldest first. Rows
-- of names that a process does not handle are never walked over.
create index hooks_due_idx on perdure.hooks (namespace, name, priority, due_at, id) where status = 'pending';

-- Serves the return of expired claims.
create index hooks_lease_idx on perdure.hooks (namespace, lease_expires_at) where status = 'processing';

-- Serves the removal of rows that are done, after their retention.
create index hooks_finished_idx on perdure.hooks (finished_at) where status in ('completed', 'cancelled');

-- Serves the list of dead letters.
create index hooks_dead_idx on perdure.hooks (created_at, id) where status in ('failed', 'quarantined');

-- Serves lists, newest first.
create index hooks_created_idx on perdure.hooks (created_at, id);
