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
