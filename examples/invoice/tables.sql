-- The tables of the process on SQLite, whose functions are in process.go.

create table billing_invoice_task (
  invoice_task_id integer primary key autoincrement,
  customer text not null,
  cents integer not null check (cents > 0),
  idempotency_key text not null
) strict;

create table billing_invoice_task_scheduled (
  invoice_task_id integer not null references billing_invoice_task,
  attempt integer not null,
  task_id integer not null,
  primary key (invoice_task_id, attempt)
) strict;

create table billing_invoice_task_failed (
  invoice_task_id integer not null,
  attempt integer not null,
  error_message text not null,
  permanent integer not null default 0,
  primary key (invoice_task_id, attempt)
) strict;

create table billing_invoice_task_succeeded (
  invoice_task_id integer primary key,
  attempt integer not null,
  result text
) strict;

-- Facts are append-only.

create trigger billing_scheduled_update before update on billing_invoice_task_scheduled begin select raise(abort, 'facts are append-only'); end;

create trigger billing_scheduled_delete before delete on billing_invoice_task_scheduled begin select raise(abort, 'facts are append-only'); end;

create trigger billing_failed_update before update on billing_invoice_task_failed begin select raise(abort, 'facts are append-only'); end;

create trigger billing_failed_delete before delete on billing_invoice_task_failed begin select raise(abort, 'facts are append-only'); end;

create trigger billing_succeeded_update before update on billing_invoice_task_succeeded begin select raise(abort, 'facts are append-only'); end;

create trigger billing_succeeded_delete before delete on billing_invoice_task_succeeded begin select raise(abort, 'facts are append-only'); end;
