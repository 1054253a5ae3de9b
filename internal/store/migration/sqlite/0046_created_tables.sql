-- The described tables that Perdure has made. It alters no other table of the application.
create table perdure_created_tables (
  schema_name text not null,
  table_name text not null,
  created_at integer not null,
  primary key (schema_name, table_name)
) without rowid;

insert into perdure_created_tables (schema_name, table_name, created_at)
select distinct s.name, json_extract(t.value, '$.name'), s.updated_at
from perdure_schemas s, json_each(s.description, '$.tables') t;
