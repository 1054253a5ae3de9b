-- The end of an instance is reversible and loses nothing.

-- The names of all signals that the instance has ever awaited, as a JSON array.
alter table perdure.instances add column awaited json;
-- The step runs again because signals arrived while its last run ended the
-- instance.
alter table perdure.instances add column rerun boolean not null default false;
-- Failed attempts of the current step. attempt also counts replays.
alter table perdure.instances add column failures integer not null default 0;
-- A suspect runs with at most this many others. Null: not a suspect.
alter table perdure.instances add column batch_limit integer;
-- Why a cancellation was requested, while the cancel step runs.
alter table perdure.instances add column cancel_reason text;
-- What the instance was waiting for when it ended, so that a retry can restore
-- it. Null: nothing.
alter table perdure.instances add column wait json;

update perdure.instances set awaited = awaits where awaits is not null;

-- Whether a step was given the signal to handle.
alter table perdure.signals add column received boolean not null default false;

-- The state that the last step left, if that differs from the state that it was
-- given. A retry continues with the latter.
alter table perdure.finished add column state json;

alter table perdure.finished drop constraint finished_status_check;
alter table perdure.finished add constraint finished_status_check
  check (status in ('done', 'stopped', 'failed', 'cancelled', 'quarantined'));

alter table perdure.transitions drop constraint transitions_outcome_check;
alter table perdure.transitions add constraint transitions_outcome_check
  check (outcome in ('next', 'replay', 'await', 'spawn', 'done', 'stop', 'fail', 'rerun', 'cancel'));

-- The step that runs when the instance is cancelled, if the definition names one.
alter table perdure.definitions add column cancel_step text;

-- Instances may also wait for a process that knows their step. Empty: any process
-- that knows the definition.
alter table perdure.unrouted add column step text not null default '';
alter table perdure.unrouted drop constraint unrouted_pkey;
alter table perdure.unrouted add primary key (queue, fsm, version, step, id);
