-- Settings, the outbox with its clock, and the descriptions of users' schemas.

create table perdure_settings (
  name text primary key,
  value text not null
) strict, without rowid;

-- The last stamp that retention removed. Its row is the lock between retention
-- and new consumers.
insert into perdure_settings (name, value) values ('outbox.pruned_through', '000000000000000000000000');

-- One row. Only one transaction writes at a time, so stamps follow commit
-- order, without gaps.
create table perdure_outbox_clock (
  id integer primary key check (id = 1),
  incarnation integer not null check (incarnation between 0 and 65535),
  counter integer not null check (counter >= 0)
) strict;

insert into perdure_outbox_clock (id, incarnation, counter) values (1, 0, 0);

create table perdure_outbox (
  versionstamp blob primary key check (length(versionstamp) = 12),
  unit_id text not null,
  payload text not null,
  ref_map text,
  created_at integer not null
) strict;

-- Serves the lookup of a unit whose commit had an unknown outcome.
create unique index perdure_outbox_unit_id_key on perdure_outbox (unit_id);

-- The stamp at which each incarnation after the first began: what a consumer
-- had read beyond it was lost in a restore.
create table perdure_outbox_incarnations (
  incarnation integer primary key,
  after_stamp blob not null check (length(after_stamp) = 12),
  reason text not null,
  created_at integer not null
) strict;

create table perdure_outbox_consumers (
  name text primary key,
  position blob not null check (length(position) = 12),
  created_at integer not null,
  updated_at integer not null
) strict, without rowid;

create table perdure_schemas (
  name text primary key,
  description text not null,
  updated_at integer not null
) strict, without rowid;
