-- The journal of durable functions, see ADR 22: the results of their calls.
create table perdure_journal (
  instance_id text not null,
  -- The path of the branch, the name of the call and its occurrence. The suffix ! marks the failures
  -- of a step, = the end of a wait.
  key text not null,
  -- The order of the records of an instance.
  seq integer not null,
  -- 1: step, 2: transaction, 3: failures, 4: open wait, 5: end of a wait, 6: value, 7: child,
  -- 8: compensation, 9: start of a step that runs at most once.
  kind integer not null,
  attempt integer not null,
  result text,
  error text,
  worker text not null,
  began_at integer not null,
  ended_at integer not null,
  primary key (instance_id, key)
) without rowid;
