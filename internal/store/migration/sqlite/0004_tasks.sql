-- Tasks: a queue whose business logic lives in the database as append-only
-- facts. SQLite has no functions of its own and no roles: the functions are Go
-- functions by the same names, and the tables are the same with prefixes.

-- A claim writes the row: status, worker, a token of its own and a lease.
-- outcome is what came of the work while its handler has yet to take note of it.
-- unrouted says that queues_error has a row for a task that nobody takes.
create table queues_task (
  task_id integer primary key autoincrement,
  task_type text not null,
  payload text not null,
  enqueued_at integer not null,
  scheduled_at integer not null,
  dequeued_at integer,
  status text not null default 'pending'
    check (status in ('pending', 'processing', 'completed', 'failed', 'quarantined', 'cancelled')),
  attempts integer not null default 0,
  crashes integer not null default 0,
  outcome text,
  unrouted integer not null default 0,
  trace text,
  worker text,
  token text,
  lease_expires_at integer,
  finished_at integer,
  check ((status = 'processing') = (token is not null)),
  check ((status = 'processing') = (lease_expires_at is not null))
) strict;

-- Serves the claim: the due rows of one type, oldest first.
create index queues_task_due_idx on queues_task (task_type, scheduled_at, task_id) where status = 'pending';

-- Serves the return of expired claims.
create index queues_task_lease_idx on queues_task (lease_expires_at) where status = 'processing';

-- Serves the removal of rows that are done, after their retention.
create index queues_task_finished_idx on queues_task (finished_at) where status in ('completed', 'cancelled');

-- Serves the list of dead letters.
create index queues_task_dead_idx on queues_task (task_id) where status in ('failed', 'quarantined');

create table queues_error (
  error_id integer primary key autoincrement,
  task_id integer references queues_task on delete set null,
  error_message text not null,
  created_at integer not null
) strict;

-- Serves the errors of one task, and the removal of a task.
create index queues_error_task_idx on queues_error (task_id, error_id);

create table comms_message (
  message_id integer primary key autoincrement,
  channel text not null check (channel in ('email', 'sms')),
  created_at integer not null
) strict;

create table comms_email_message (
  message_id integer primary key references comms_message,
  from_address text not null,
  to_address text not null,
  subject text not null,
  text_body text,
  html_body text
) strict;

create table comms_sms_message (
  message_id integer primary key references comms_message,
  from_number text,
  to_number text not null,
  body text not null
) strict;

-- One logical send. Its key is the same for all attempts, so that a provider
-- can tell that they are one.
create table comms_send_email_task (
  send_email_task_id integer primary key autoincrement,
  message_id integer not null references comms_email_message,
  idempotency_key text not null,
  created_at integer not null
) strict;

-- Facts, one row per attempt: it was begun, as a task of the queue; it failed.
-- An attempt has at most one outcome, so a handler that is called twice counts
-- once. permanent says that another attempt would be no better.
create table comms_send_email_task_scheduled (
  send_email_task_id integer not null references comms_send_email_task,
  attempt integer not null,
  task_id integer not null,
  created_at integer not null,
  primary key (send_email_task_id, attempt)
) strict;

create table comms_send_email_task_failed (
  send_email_task_id integer not null,
  attempt integer not null,
  error_message text not null,
  permanent integer not null default 0,
  created_at integer not null,
  primary key (send_email_task_id, attempt),
  foreign key (send_email_task_id, attempt) references comms_send_email_task_scheduled (send_email_task_id, attempt)
) strict;

-- The terminal fact: at most one per send.
create table comms_send_email_task_succeeded (
  send_email_task_id integer primary key,
  attempt integer not null,
  worker_payload text,
  created_at integer not null,
  foreign key (send_email_task_id, attempt) references comms_send_email_task_scheduled (send_email_task_id, attempt)
) strict;

create table comms_send_sms_task (
  send_sms_task_id integer primary key autoincrement,
  message_id integer not null references comms_sms_message,
  idempotency_key text not null,
  created_at integer not null
) strict;

create table comms_send_sms_task_scheduled (
  send_sms_task_id integer not null references comms_send_sms_task,
  attempt integer not null,
  task_id integer not null,
  created_at integer not null,
  primary key (send_sms_task_id, attempt)
) strict;

create table comms_send_sms_task_failed (
  send_sms_task_id integer not null,
  attempt integer not null,
  error_message text not null,
  permanent integer not null default 0,
  created_at integer not null,
  primary key (send_sms_task_id, attempt),
  foreign key (send_sms_task_id, attempt) references comms_send_sms_task_scheduled (send_sms_task_id, attempt)
) strict;

create table comms_send_sms_task_succeeded (
  send_sms_task_id integer primary key,
  attempt integer not null,
  worker_payload text,
  created_at integer not null,
  foreign key (send_sms_task_id, attempt) references comms_send_sms_task_scheduled (send_sms_task_id, attempt)
) strict;

-- Facts are never changed: state is derived from what happened.
create trigger comms_email_scheduled_update before update on comms_send_email_task_scheduled begin select raise(abort, 'facts are append-only'); end;

create trigger comms_email_scheduled_delete before delete on comms_send_email_task_scheduled begin select raise(abort, 'facts are append-only'); end;

create trigger comms_email_failed_update before update on comms_send_email_task_failed begin select raise(abort, 'facts are append-only'); end;

create trigger comms_email_failed_delete before delete on comms_send_email_task_failed begin select raise(abort, 'facts are append-only'); end;

create trigger comms_email_succeeded_update before update on comms_send_email_task_succeeded begin select raise(abort, 'facts are append-only'); end;

create trigger comms_email_succeeded_delete before delete on comms_send_email_task_succeeded begin select raise(abort, 'facts are append-only'); end;

create trigger comms_sms_scheduled_update before update on comms_send_sms_task_scheduled begin select raise(abort, 'facts are append-only'); end;

create trigger comms_sms_scheduled_delete before delete on comms_send_sms_task_scheduled begin select raise(abort, 'facts are append-only'); end;

create trigger comms_sms_failed_update before update on comms_send_sms_task_failed begin select raise(abort, 'facts are append-only'); end;

create trigger comms_sms_failed_delete before delete on comms_send_sms_task_failed begin select raise(abort, 'facts are append-only'); end;

create trigger comms_sms_succeeded_update before update on comms_send_sms_task_succeeded begin select raise(abort, 'facts are append-only'); end;

create trigger comms_sms_succeeded_delete before delete on comms_send_sms_task_succeeded begin select raise(abort, 'facts are append-only'); end;
