-- The machines that processes know, so that tools can show and start them.

create table perdure_definitions (
  fsm text not null,
  version integer not null,
  first_step text not null,
  queue text not null,
  steps text not null,
  -- The JSON Schema of the state, if it is known.
  schema text,
  updated_at integer not null,
  primary key (fsm, version)
) strict, without rowid;
