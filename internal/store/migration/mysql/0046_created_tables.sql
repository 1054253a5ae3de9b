-- The described tables that Perdure has made. It alters no other table of the application.
-- MySQL commits with every DDL statement: each one can run again.
create table if not exists perdure_created_tables (
  schema_name varchar(64) not null,
  table_name varchar(64) not null,
  created_at datetime(6) not null,
  primary key (schema_name, table_name)
) engine=InnoDB default character set utf8mb4 collate {collation};

insert ignore into perdure_created_tables (schema_name, table_name, created_at)
select s.name, t.name, s.updated_at
from perdure_schemas s, json_table(s.description, '$.tables[*]' columns (name varchar(64) path '$.name')) t;
