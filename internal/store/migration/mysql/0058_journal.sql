-- The journal of durable functions, see ADR 22: the results of their calls.
create table if not exists perdure_journal (
  instance_id varchar(36) not null,
  -- The path of the branch, the name of the call and its occurrence. The suffix ! marks the failures
  -- of a step, = the end of a wait.
  `key` varchar(512) not null,
  -- The order of the records of an instance.
  seq int not null,
  -- 1: step, 2: transaction, 3: failures, 4: open wait, 5: end of a wait, 6: value, 7: child,
  -- 8: compensation, 9: start of a step that runs at most once.
  kind smallint not null,
  attempt int not null,
  result longtext,
  error longtext,
  worker varchar(128) not null,
  began_at datetime(6) not null,
  ended_at datetime(6) not null,
  primary key (instance_id, `key`)
) engine=InnoDB default character set utf8mb4 collate {collation};
