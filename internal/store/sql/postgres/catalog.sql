-- The objects that the migrations create, on PostgreSQL. See catalog.go.

-- name: Catalog
-- The tables, indexes, constraints, functions and triggers of Perdure.
select 'column ' || n.nspname || '.' || c.relname || '.' || a.attname,
  format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname in ('perdure', 'queues', 'comms', 'internal') and c.relkind in ('r', 'p')
union all
select 'view ' || n.nspname || '.' || c.relname, c.relnatts || ' columns'
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('perdure', 'queues', 'comms', 'internal') and c.relkind = 'v'
union all
select 'index ' || n.nspname || '.' || c.relname, case when x.indisunique then 'unique' else 'plain' end || case when x.indisvalid then '' else ' invalid' end
from pg_index x
join pg_class c on c.oid = x.indexrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('perdure', 'queues', 'comms', 'internal')
union all
select 'constraint ' || n.nspname || '.' || c.relname || '.' || k.conname, k.contype::text || case when k.convalidated then '' else ' not validated' end
from pg_constraint k
join pg_class c on c.oid = k.conrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('perdure', 'queues', 'comms', 'internal') and k.contype in ('c', 'f', 'p', 'u', 'x')
union all
select 'function ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', md5(p.prosrc)
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('perdure', 'queues', 'comms', 'internal')
union all
select 'trigger ' || n.nspname || '.' || c.relname || '.' || t.tgname, case t.tgenabled when 'D' then 'disabled' else 'enabled' end
from pg_trigger t
join pg_class c on c.oid = t.tgrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('perdure', 'queues', 'comms', 'internal') and not t.tgisinternal
