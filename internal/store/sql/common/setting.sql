-- Settings and the descriptions of users' schemas.

-- name: SettingGet
select value
from perdure.settings
where name = ?

-- name: SettingLock
select value
from perdure.settings
where name = ?
{lock for no key update}

-- name: SettingUpdate
update perdure.settings
set value = ?
where name = ?

-- name: SettingDelete
delete from perdure.settings
where name = ?

-- name: SettingInsert
insert into perdure.settings (name, value)
values (?, ?)

-- name: SchemaDelete
delete from perdure.schemas
where name = ?

-- name: SchemaInsert
insert into perdure.schemas (name, description, updated_at)
values (?, ?, ?)

-- name: SchemaList
select name, description
from perdure.schemas
order by name

-- name: TableInsert
insert into perdure.created_tables (schema_name, table_name, created_at)
values (?, ?, ?)

-- name: TableList
select schema_name, table_name
from perdure.created_tables

-- name: MigrationList
select version, checksum
from perdure.migrations
order by version

-- name: MigrationInsert
insert into perdure.migrations (version, name, checksum, applied_at)
values (?, ?, ?, ?)
