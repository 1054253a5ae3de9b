-- Settings, the outbox with its clock, and the descriptions of users' schemas.
-- MySQL commits with every DDL statement: each one can run again.

create table if not exists perdure_settings (
  name varchar(128) primary key,
  value longtext not null
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The last stamp that retention removed. Its row is the lock between retention
-- and new consumers.
insert ignore into perdure_settings (name, value) values ('outbox.pruned_through', '000000000000000000000000');

-- One row. Updating it is the last lock that a unit takes, and it is held
-- through commit: that is what makes stamps follow commit order, without gaps.
create table if not exists perdure_outbox_clock (
  id tinyint primary key check (id = 1),
  incarnation int not null check (incarnation between 0 and 65535),
  counter bigint not null check (counter >= 0)
) engine=InnoDB default character set utf8mb4 collate {collation};

insert ignore into perdure_outbox_clock (id, incarnation, counter) values (1, 0, 0);

-- unit_id serves the lookup of a unit whose commit had an unknown outcome.
create table if not exists perdure_outbox (
  versionstamp binary(12) primary key,
  unit_id varchar(128) not null,
  payload longtext not null,
  ref_map longtext,
  created_at datetime(6) not null,
  unique key outbox_unit_id_key (unit_id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The stamp at which each incarnation after the first began: what a consumer
-- had read beyond it was lost in a restore.
create table if not exists perdure_outbox_incarnations (
  incarnation int primary key,
  after_stamp binary(12) not null,
  reason text not null,
  created_at datetime(6) not null
) engine=InnoDB default character set utf8mb4 collate {collation};

create table if not exists perdure_outbox_consumers (
  name varchar(128) primary key,
  position binary(12) not null,
  created_at datetime(6) not null,
  updated_at datetime(6) not null
) engine=InnoDB default character set utf8mb4 collate {collation};

create table if not exists perdure_schemas (
  name varchar(128) primary key,
  description longtext not null,
  updated_at datetime(6) not null
) engine=InnoDB default character set utf8mb4 collate {collation};
