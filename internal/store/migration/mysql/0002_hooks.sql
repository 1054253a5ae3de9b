-- Durable hooks: effects that run after commit, at a time, with retries.
-- hooks_due_idx serves the claim: the due rows of one name and priority, oldest
-- first. hooks_lease_idx serves the return of expired claims, hooks_finished_idx
-- the removal of rows that are done, hooks_created_idx lists.

create table if not exists perdure_hooks (
  id varchar(128) primary key,
  namespace varchar(128) not null,
  name varchar(128) not null,
  payload longtext not null,
  status varchar(16) not null default 'pending'
    check (status in ('pending', 'processing', 'completed', 'failed', 'quarantined', 'cancelled')),
  priority smallint not null default 0,
  policy text not null,
  max_attempts int not null,
  attempts int not null default 0,
  crashes int not null default 0,
  error longtext,
  unit_id varchar(128) not null,
  trace text,
  created_at datetime(6) not null,
  next_attempt_at datetime(6),
  due_at datetime(6) not null,
  last_attempt_at datetime(6),
  finished_at datetime(6),
  worker varchar(128),
  token varchar(64),
  lease_expires_at datetime(6),
  key hooks_due_idx (status, namespace, name, priority, due_at, id),
  key hooks_lease_idx (status, namespace, lease_expires_at),
  key hooks_finished_idx (status, finished_at),
  key hooks_created_idx (created_at, id),
  check ((status = 'processing') = (token is not null)),
  check ((status = 'processing') = (lease_expires_at is not null))
) engine=InnoDB default character set utf8mb4 collate {collation};
