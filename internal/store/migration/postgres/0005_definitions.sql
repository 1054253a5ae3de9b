-- The machines that processes know, so that tools can show and start them.

create table perdure.definitions (
  fsm text not null,
  version integer not null,
  first_step text not null,
  queue text not null,
  steps json not null,
  -- The JSON Schema of the state, if it is known.
  schema json,
  updated_at timestamptz not null,
  primary key (fsm, version)
);
