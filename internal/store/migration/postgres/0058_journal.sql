-- The journal of durable functions, see ADR 22: the results of their calls.
create table perdure.journal (
  instance_id uuid not null,
  -- The path of the branch, the name of the call and its occurrence. The suffix ! marks the failures
  -- of a step, = the end of a wait.
  key text not null,
  -- The order of the records of an instance.
  seq integer not null,
  -- 1: step, 2: transaction, 3: failures, 4: open wait, 5: end of a wait, 6: value, 7: child,
  -- 8: compensation, 9: start of a step that runs at most once.
  kind smallint not null,
  attempt integer not null,
  result json,
  error text,
  worker text not null,
  began_at timestamptz not null,
  ended_at timestamptz not null,
  primary key (instance_id, key)
);
