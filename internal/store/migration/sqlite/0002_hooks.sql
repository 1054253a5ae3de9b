-- Durable hooks: effects that run after commit, at a time, with retries.

create table perdure_hooks (
  id text primary key,
  namespace text not null,
  name text not null,
  payload text not null,
  status text not null default 'pending'
    check (status in ('pending', 'processing', 'completed', 'failed', 'quarantined', 'cancelled')),
  priority integer not null default 0,
  policy text not null,
  max_attempts integer not null,
  attempts integer not null default 0,
  crashes integer not null default 0,
  error text,
  unit_id text not null,
  trace text,
  created_at integer not null,
  next_attempt_at integer,
  due_at integer not null,
  last_attempt_at integer,
  finished_at integer,
  worker text,
  token text,
  lease_expires_at integer,
  check ((status = 'processing') = (token is not null)),
  check ((status = 'processing') = (lease_expires_at is not null))
) strict;

-- Serves the claim: the due rows of one name and priority, oldest first. Rows
-- of names that a process does not handle are never walked over.
create index perdure_hooks_due_idx on perdure_hooks (namespace, name, priority, due_at, id) where status = 'pending';

-- Serves the return of expired claims.
create index perdure_hooks_lease_idx on perdure_hooks (namespace, lease_expires_at) where status = 'processing';

-- Serves the removal of rows that are done, after their retention.
create index perdure_hooks_finished_idx on perdure_hooks (finished_at) where status in ('completed', 'cancelled');

-- Serves the list of dead letters.
create index perdure_hooks_dead_idx on perdure_hooks (created_at, id) where status in ('failed', 'quarantined');

-- Serves lists, newest first.
create index perdure_hooks_created_idx on perdure_hooks (created_at, id);
