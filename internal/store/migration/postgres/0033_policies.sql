-- The retry policies of state machines. A row says which policies instances have that
-- were started since a time: those that the definition had then.

create table perdure.policies (
  fsm text not null,
  version integer not null,
  since timestamptz not null,
  -- JSON: the policy of the definition, and those of single steps.
  retry text not null,
  primary key (fsm, version, since)
);
