-- What the steps of instances came to, of machines that keep their history.

create table perdure.transitions (
  instance_id uuid not null,
  seq bigint generated always as identity,
  step text not null,
  outcome text not null check (outcome in ('next', 'replay', 'await', 'spawn', 'done', 'stop')),
  -- The step that follows, if one does.
  next text,
  attempt integer not null,
  crashes integer not null,
  error text,
  worker text not null,
  began_at timestamptz not null,
  ended_at timestamptz not null,
  primary key (instance_id, seq)
);
