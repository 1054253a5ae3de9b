-- Attempts of hooks that did not succeed. One that runs or has succeeded is told by
-- the row of the hook, so that success costs nothing here.
create table if not exists perdure_attempts (
  kind varchar(16) not null check (kind = 'hook'),
  id varchar(128) not null,
  actor_type varchar(128) not null default '',
  actor_id varchar(128) not null default '',
  -- Counts those that were recorded.
  seq bigint not null,
  step varchar(128),
  attempt int not null,
  outcome varchar(16) not null check (outcome in ('failed', 'lost', 'cancelled')),
  error longtext not null,
  worker varchar(128),
  began_at datetime(6),
  ended_at datetime(6) not null,
  primary key (kind, id, actor_type, actor_id, seq)
) engine=InnoDB default character set utf8mb4 collate {collation};
