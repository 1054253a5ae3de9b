-- State machines whose steps are HTTP endpoints.

-- The endpoints are in spec; the secrets that sign what is said to them lie apart,
-- sealed where there are keys.
create table perdure_remote_definitions (
  fsm text not null,
  version integer not null,
  spec text not null,
  secrets text not null,
  created_at integer not null,
  updated_at integer not null,
  primary key (fsm, version)
) strict, without rowid;
