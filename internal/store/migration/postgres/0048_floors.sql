-- Claims that never walk over dead rows, see ADR 18. While another session holds an old
-- snapshot, the rows that claims have deleted stay in the indexes. So a claim starts at the
-- floor of its lane, and finds what arrived below the floor by the transaction that added it.

-- The transaction that added the row, or moved it.
alter table perdure.ready add column arrived xid8 not null default pg_current_xact_id();
alter table perdure.leases add column arrived xid8 not null default pg_current_xact_id();

-- The planner does not know of dead rows, and takes a table of them for empty. The collation, and
-- few columns, keep it from using these indexes where others are meant.
create index ready_arrived_idx on perdure.ready (queue collate "C", arrived);
create index leases_arrived_idx on perdure.leases (queue collate "C", arrived);

create index leases_expiry_idx on perdure.leases (queue, expires_at, token);

-- A row that is moved arrives again: its new place may be below the floor.
create function perdure.arrive() returns trigger language plpgsql as $$
begin
  new.arrived := pg_current_xact_id();
  return new;
end
$$;

revoke all on function perdure.arrive() from public;

create trigger ready_moved before update on perdure.ready for each row execute function perdure.arrive();
create trigger leases_moved before update on perdure.leases for each row execute function perdure.arrive();

-- Where looks begin. A row stays true: every row of its lane that was added by a
-- transaction that it has seen lies at the floor or above, is one of its pins, or is gone. Looks
-- use the newest. It is a cache: without it, they begin at the start of the index.
create unlogged table perdure.floors (
  -- ready or leases.
  source text not null,
  -- The lane in ready, or the queue of the leases.
  queue text not null,
  -- The priority in ready, 0 for leases.
  priority smallint not null,
  seq bigint generated always as identity,
  -- The start of the server that made the row. Numbers of transactions of another server mean
  -- nothing here.
  server timestamptz not null default pg_postmaster_start_time(),
  made_at timestamptz not null default clock_timestamp(),
  -- No row was there when the floor was raised.
  empty boolean not null,
  -- The floor: (due_at, id) in ready, (expires_at, token) in leases.
  at timestamptz not null,
  id uuid not null,
  -- The transactions that it has seen are those before seen_to except the open ones.
  seen_to xid8 not null,
  open xid8[] not null,
  -- Rows below the floor.
  pin_at timestamptz[] not null,
  pin_id uuid[] not null,
  primary key (source, queue, priority, seq)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
