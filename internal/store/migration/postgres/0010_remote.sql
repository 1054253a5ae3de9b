-- State machines whose steps are HTTP endpoints.

-- The endpoints are in spec; the secrets that sign what is said to them lie apart,
-- sealed where there are keys.
create table perdure.remote_definitions (
  fsm text not null,
  version integer not null,
  spec json not null,
  secrets json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (fsm, version)
);
