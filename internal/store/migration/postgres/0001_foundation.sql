-- Settings, the outbox with its clock, and the descriptions of users' schemas.

create table perdure.settings (
  name text primary key,
  value text not null
);

-- The last stamp that retention removed. Its row is the lock between retention
-- and new consumers.
insert into perdure.settings (name, value) values ('outbox.pruned_through', '000000000000000000000000');

-- One row. Updating it is the last lock that a unit takes, and it is held
-- through commit: that is what makes stamps follow commit order, without gaps.
-- fillfactor: every version of the row fits on its page (HOT updates).
create table perdure.outbox_clock (
  id smallint primary key check (id = 1),
  incarnation integer not null check (incarnation between 0 and 65535),
  counter bigint not null check (counter >= 0)
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

insert into perdure.outbox_clock (id, incarnation, counter) values (1, 0, 0);

create table perdure.outbox (
  versionstamp bytea primary key check (length(versionstamp) = 12),
  unit_id text not null,
  payload json not null,
  ref_map json,
  created_at timestamptz not null
);

-- Serves the lookup of a unit whose commit had an unknown outcome.
create unique index outbox_unit_id_key on perdure.outbox (unit_id);

-- The stamp at which each incarnation after the first began: what a consumer
-- had read beyond it was lost in a restore.
create table perdure.outbox_incarnations (
  incarnation integer primary key,
  after_stamp bytea not null check (length(after_stamp) = 12),
  reason text not null,
  created_at timestamptz not null
);

create table perdure.outbox_consumers (
  name text primary key,
  position bytea not null check (length(position) = 12),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table perdure.schemas (
  name text primary key,
  description json not null,
  updated_at timestamptz not null
);
