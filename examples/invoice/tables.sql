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
