-- The end of an instance is reversible and loses nothing.

-- The names of all signals that the instance has ever awaited, as a JSON array.
alter table perdure_instances add column awaited text;
-- The step runs again because signals arrived while its last run ended the
-- instance.
alter table perdure_instances add column rerun integer not null default 0;
-- Failed attempts of the current step. attempt also counts replays.
alter table perdure_instances add column failures integer not null default 0;
-- A suspect runs with at most this many others. Null: not a suspect.
alter table perdure_instances add column batch_limit integer;
-- Why a cancellation was requested, while the cancel step runs.
alter table perdure_instances add column cancel_reason text;
-- What the instance was waiting for when it ended, so that a retry can restore it.
-- Null: nothing.
alter table perdure_instances add column wait text;

update perdure_instances set awaited = awaits where awaits is not null;

-- Whether a step was given the signal to handle.
alter table perdure_signals add column received integer not null default 0;

create table perdure_finished_new (
  id text primary key,
  status text not null check (status in ('done', 'stopped', 'failed', 'cancelled', 'quarantined')),
  result text,
  error text,
  finished_at integer not null,
  -- The state that the last step left, if that differs from the state that it was
  -- given. A retry continues with the latter.
  state text
) strict;
insert into perdure_finished_new (id, status, result, error, finished_at)
select id, status, result, error, finished_at from perdure_finished;
drop table perdure_finished;
alter table perdure_finished_new rename to perdure_finished;

-- Serves retention.
create index perdure_finished_at_idx on perdure_finished (finished_at);

-- Serves the list of dead letters.
create index perdure_finished_dead_idx on perdure_finished (id) where status in ('failed', 'quarantined');

-- Serves the list of instances that were cancelled.
create index perdure_finished_cancelled_idx on perdure_finished (id) where status = 'cancelled';

create table perdure_transitions_new (
  seq integer primary key,
  instance_id text not null,
  step text not null,
  outcome text not null check (outcome in ('next', 'replay', 'await', 'spawn', 'done', 'stop', 'fail', 'rerun', 'cancel')),
  -- The step that follows, if one does.
  next text,
  attempt integer not null,
  crashes integer not null,
  error text,
  worker text not null,
  began_at integer not null,
  ended_at integer not null
) strict;
insert into perdure_transitions_new
select seq, instance_id, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at from perdure_transitions;
drop table perdure_transitions;
alter table perdure_transitions_new rename to perdure_transitions;

-- Serves the history of one instance.
create index perdure_transitions_instance_idx on perdure_transitions (instance_id, seq);

-- The step that runs when the instance is cancelled, if the definition names one.
alter table perdure_definitions add column cancel_step text;

-- Instances may also wait for a process that knows their step. Empty: any process
-- that knows the definition.
create table perdure_unrouted_new (
  queue text not null,
  fsm text not null,
  version integer not null,
  step text not null default '',
  id text not null,
  primary key (queue, fsm, version, step, id)
) strict;
insert into perdure_unrouted_new (queue, fsm, version, id)
select queue, fsm, version, id from perdure_unrouted;
drop table perdure_unrouted;
alter table perdure_unrouted_new rename to perdure_unrouted;
