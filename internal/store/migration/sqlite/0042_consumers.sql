-- Consumers that a handler serves: a lease, so that one process handles their entries at a
-- time, the retries of a failing entry, and dead letters.

-- The lease of the process that handles entries. Null: no process does.
alter table perdure_outbox_consumers add column token text;

-- The process that has the lease, or had the last one.
alter table perdure_outbox_consumers add column worker text;

-- The end of the lease. Then another process may take over.
alter table perdure_outbox_consumers add column lease_expires_at integer;

-- The failed attempts of the first entry after the position.
alter table perdure_outbox_consumers add column attempts integer not null default 0;

-- The crashes of processes that handled the first entry after the position.
alter table perdure_outbox_consumers add column crashes integer not null default 0;

-- The largest batch after a failure. Null: no limit.
alter table perdure_outbox_consumers add column batch_limit integer;

-- The time of the next attempt after a failure.
alter table perdure_outbox_consumers add column retry_at integer;

-- The error of the last failed attempt.
alter table perdure_outbox_consumers add column error text;

-- Whether the consumer waits for an operator, usually at a dead letter.
alter table perdure_outbox_consumers add column stopped integer not null default 0;

-- Dead letters of consumers: copies of the entries, because retention may remove those.
create table perdure_outbox_dead (
  consumer text not null,
  versionstamp blob not null check (length(versionstamp) = 12),
  unit_id text not null,
  payload text not null,
  ref_map text,
  entry_created_at integer not null,
  status text not null check (status in ('failed', 'quarantined', 'retrying')),
  error text not null,
  attempts integer not null,
  -- The time of the next attempt, if an operator has retried it.
  due_at integer,
  created_at integer not null,
  primary key (consumer, versionstamp)
) strict;

-- Serves the list of dead letters.
create index perdure_outbox_dead_created_idx on perdure_outbox_dead (entry_created_at, consumer, versionstamp);

-- Serves the claim of retried dead letters.
create index perdure_outbox_dead_due_idx on perdure_outbox_dead (consumer, due_at) where status = 'retrying';
