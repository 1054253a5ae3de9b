-- The objects that the migrations create, on SQLite. See catalog.go.

-- name: Catalog
-- The tables, indexes and triggers of Perdure.
select 'column ' || m.name || '.' || c.name, lower(c.type) || case when c."notnull" then ' not null' else '' end
from sqlite_master m
join pragma_table_info(m.name) c
where m.type = 'table' and (m.name like 'perdure\_%' escape '\' or m.name like 'queues\_%' escape '\' or m.name like 'comms\_%' escape '\')
union all
select 'index ' || i.name || ' of ' || m.name, case when i."unique" then 'unique' else 'plain' end || ' ' || (select group_concat(coalesce(x.name, '?'), ', ') from pragma_index_info(i.name) x)
from sqlite_master m
join pragma_index_list(m.name) i
where m.type = 'table' and (m.name like 'perdure\_%' escape '\' or m.name like 'queues\_%' escape '\' or m.name like 'comms\_%' escape '\')
union all
select 'checks of ' || m.name, cast((length(m.sql) - length(replace(lower(m.sql), 'check (', ''))) / 7 as text)
from sqlite_master m
where m.type = 'table' and (m.name like 'perdure\_%' escape '\' or m.name like 'queues\_%' escape '\' or m.name like 'comms\_%' escape '\')
union all
select 'view ' || m.name, (select count(*) from pragma_table_info(m.name)) || ' columns'
from sqlite_master m
where m.type = 'view' and m.name like 'perdure\_%' escape '\'
union all
select 'trigger ' || m.name || ' of ' || m.tbl_name, ''
from sqlite_master m
where m.type = 'trigger'
