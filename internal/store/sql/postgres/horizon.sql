-- What keeps PostgreSQL from removing deleted rows.

-- name: Horizon
-- Returns the number of deleted rows, and the oldest transaction or slot that they are kept for,
-- if it has been open for some microseconds. Sessions of other databases do not count. The start
-- of a session is hidden from roles without pg_read_all_stats. Slots and standbys have no start:
-- they count if they are 100,000 transactions behind.
with held as (
  select 'session' as holder, a.pid::text as name, concat_ws(', ', nullif(a.usename::text, ''), nullif(a.application_name, ''), host(a.client_addr), a.state) as detail,
    a.xact_start as since, greatest(age(a.backend_xmin), age(a.backend_xid)) as age
  from pg_stat_activity a
  where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type <> 'autovacuum worker' and (a.backend_xmin is not null or a.backend_xid is not null)
  union all
  select 'prepared', p.gid, p.owner::text, p.prepared, age(p.transaction)
  from pg_prepared_xacts p
  where p.database = current_database()
  union all
  select 'slot', s.slot_name::text, concat_ws(', ', s.slot_type, case when s.active then 'active' else 'not active' end), null, age(s.xmin)
  from pg_replication_slots s
  where s.xmin is not null
  union all
  select 'standby', coalesce(nullif(r.application_name, ''), r.pid::text), host(r.client_addr), null, age(r.backend_xmin)
  from pg_stat_replication r
  where r.backend_xmin is not null and not exists (select 1 from pg_replication_slots s where s.active_pid = r.pid)
)
select coalesce(o.holder, ''), coalesce(o.name, ''), coalesce(o.detail, ''), o.since, dead.n
from (
  select coalesce(sum(t.n_dead_tup), 0)::bigint as n
  from pg_stat_user_tables t
  where t.schemaname in ('perdure', 'queues')
) dead
left join lateral (
  select h.holder, h.name, h.detail, h.since
  from held h
  where h.since <= clock_timestamp() - ?::bigint * interval '1 microsecond' or h.since is null and h.holder <> 'session' and h.age > 100000
  order by h.age desc, h.since
  limit 1
) o on true
