-- The server: requests that must not be done twice, the processes that run, API tokens and
-- the audit log.
-- MySQL commits with every DDL statement: each one can run again.

-- One row for each Idempotency-Key of a principal. It is committed with what the request
-- did, so it is there exactly if that is. idempotency_created_idx serves the removal of old
-- keys.
create table if not exists perdure_idempotency (
  principal varchar(256) not null,
  `key` varbinary(512) not null,
  fingerprint varchar(128) not null,
  response longtext,
  created_at datetime(6) not null,
  primary key (principal, `key`),
  key idempotency_created_idx (created_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- running is how much it ran when it was last seen: [{"kind": …, "queue": …, "running": …}].
create table if not exists perdure_nodes (
  id varchar(128) primary key,
  host text not null,
  pid bigint not null,
  version text not null,
  roles text not null,
  work longtext not null,
  running longtext not null,
  draining tinyint not null default 0,
  started_at datetime(6) not null,
  seen_at datetime(6) not null
) engine=InnoDB default character set utf8mb4 collate {collation};

-- What was finished in each interval, and what was due at its end, for the charts: written
-- once, by the first process.
create table if not exists perdure_samples (
  kind varchar(16) not null,
  at datetime(6) not null,
  finished bigint not null,
  failed bigint not null,
  due bigint not null,
  primary key (kind, at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- How long work waited from its due time until it began, in each interval and by each
-- process: how many waits were in each bucket of a histogram.
create table if not exists perdure_waits (
  at datetime(6) not null,
  node varchar(128) not null,
  buckets text not null,
  primary key (at, node)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Only the hash of a token is stored. A session belongs to the API token that it was begun
-- with, and ends with it. tokens_expires_idx serves the removal of expired tokens,
-- tokens_kind_idx and tokens_actor_idx the lists.
create table if not exists perdure_tokens (
  id varchar(64) primary key,
  kind varchar(16) not null check (kind in ('api', 'actor', 'session')),
  hash varbinary(64) not null,
  name text not null,
  role varchar(32) not null,
  actor_type varchar(128),
  actor_id varbinary(512),
  caller_kind varchar(16),
  caller_id varchar(512),
  parent_id varchar(64),
  created_at datetime(6) not null,
  used_at datetime(6),
  idle bigint,
  expires_at datetime(6),
  revoked_at datetime(6),
  unique key tokens_hash_key (hash),
  key tokens_parent_idx (parent_id),
  key tokens_expires_idx (expires_at),
  key tokens_kind_idx (kind, id),
  key tokens_actor_idx (kind, actor_type, actor_id, id),
  constraint tokens_parent_fk foreign key (parent_id) references perdure_tokens (id) on delete cascade,
  constraint tokens_actor_check check ((kind = 'actor') = (actor_type is not null and actor_id is not null and caller_kind is not null and caller_id is not null)),
  constraint tokens_session_check check ((kind = 'session') = (idle is not null) and (kind <> 'session' or expires_at is not null))
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The audit log: what operators and tokens have changed. See internal/audit. On MySQL no
-- trigger refuses a change of an entry, because a trigger needs a privilege that hosted
-- servers do not give: the chains show it.
create table if not exists perdure_audit (
  id varchar(64) primary key,
  chain int not null,
  seq bigint not null,
  at datetime(6) not null,
  action varchar(128) not null,
  kind varchar(64) not null,
  target varbinary(2048) not null,
  principal varchar(256) not null,
  label text not null,
  role varchar(32) not null,
  via text not null,
  address text not null,
  request text not null,
  reason text not null,
  input longtext not null,
  `before` longtext not null,
  `after` longtext not null,
  hash varchar(128) not null,
  unique key audit_chain_key (chain, seq),
  key audit_target_idx (kind, target, id),
  key audit_principal_idx (principal, id),
  key audit_action_idx (action, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- The ends of the chains. base is the last entry that retention has removed.
create table if not exists perdure_audit_chains (
  chain int primary key,
  seq bigint not null default 0,
  hash varchar(128) not null default '',
  base_seq bigint not null default 0,
  base_hash varchar(128) not null default ''
) engine=InnoDB default character set utf8mb4 collate {collation};

insert ignore into perdure_audit_chains (chain)
select n.chain
from (
  with recursive n (chain) as (select 1 union all select chain + 1 from n where chain < 64)
  select chain from n
) n;

-- Serves the lists of dead letters and of instances that were cancelled or stopped.
set @perdure_step = if(exists(
  select 1
  from information_schema.statistics
  where table_schema = database() and table_name = 'perdure_finished' and index_name = 'finished_status_idx'
), 'do 0', 'create index finished_status_idx on perdure_finished (status)');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

-- The retry policies of state machines. A row says which policies instances have that
-- were started since a time: those that the definition had then. retry is JSON: the
-- policy of the definition, and those of single steps.

create table if not exists perdure_policies (
  fsm varchar(128) not null,
  version int not null,
  since datetime(6) not null,
  retry longtext not null,
  primary key (fsm, version, since)
) engine=InnoDB default character set utf8mb4 collate {collation};
