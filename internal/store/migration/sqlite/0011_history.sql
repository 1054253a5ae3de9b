-- What the steps of instances came to, of machines that keep their history.

create table perdure_transitions (
  seq integer primary key,
  instance_id text not null,
  step text not null,
  outcome text not null check (outcome in ('next', 'replay', 'await', 'spawn', 'done', 'stop')),
  -- The step that follows, if one does.
  next text,
  attempt integer not null,
  crashes integer not null,
  error text,
  worker text not null,
  began_at integer not null,
  ended_at integer not null
) strict;

-- Serves the history of one instance.
create index perdure_transitions_instance_idx on perdure_transitions (instance_id, seq);
