-- The described tables that Perdure has made. It alters no other table of the application.
create table perdure.created_tables (
  schema_name text not null,
  table_name text not null,
  created_at timestamptz not null,
  primary key (schema_name, table_name)
);

insert into perdure.created_tables (schema_name, table_name, created_at)
select distinct s.name, t.value ->> 'name', s.updated_at
from perdure.schemas s, json_array_elements(s.description -> 'tables') t;
