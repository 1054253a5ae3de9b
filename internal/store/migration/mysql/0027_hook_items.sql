-- Hooks use tables of due and of running work: ready, leases and interrupts. A hook that
-- waits is in ready, one that runs in a lease, and one that has ended in hook_ends.
-- perdure_hooks is a view of all of it.
-- MySQL commits with every DDL statement: each one can run again. The old table is renamed
-- first, so that no process writes to it while its rows are copied.

set @perdure_step = if(exists(
  select 1
  from information_schema.tables
  where table_schema = database() and table_name = 'perdure_hooks' and table_type = 'BASE TABLE'
), 'rename table perdure_hooks to perdure_hooks_before', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;

-- Exists already, unless the migration was cut off after its last statement.
create table if not exists perdure_hooks_before (
  id varchar(128) primary key,
  namespace varchar(128) not null,
  name varchar(128) not null,
  payload longtext not null,
  status varchar(16) not null,
  priority smallint not null,
  policy text not null,
  max_attempts int not null,
  attempts int not null,
  crashes int not null,
  batch_limit int,
  error longtext,
  unit_id varchar(128) not null,
  trace text,
  created_at datetime(6) not null,
  next_attempt_at datetime(6),
  due_at datetime(6) not null,
  last_attempt_at datetime(6),
  finished_at datetime(6),
  worker varchar(128),
  token varchar(64),
  lease_expires_at datetime(6)
) engine=InnoDB default character set utf8mb4 collate {collation};

create table if not exists perdure_ready (
  queue varchar(300) not null,
  suspect tinyint not null default 0,
  priority smallint not null,
  due_at datetime(6) not null,
  id varchar(36) not null,
  primary key (queue, suspect, priority, due_at, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- One row per batch of claims. ids is a JSON array. A hook whose outcome is committed stays
-- in ids: the newest lease that names a hook holds it, unless it is in another place.
-- leases_due_idx serves the return of expired leases, leases_worker_idx the search for what
-- a process holds.
create table if not exists perdure_leases (
  seq bigint auto_increment primary key,
  token varchar(36) not null,
  worker varchar(128) not null,
  queue varchar(300) not null,
  alone tinyint not null,
  claimed_at datetime(6) not null,
  expires_at datetime(6) not null,
  ids longtext not null,
  unique key leases_token_key (token),
  key leases_due_idx (queue, expires_at),
  key leases_worker_idx (worker)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- Claims that were taken away from a lease that continues: cancelled hooks.
create table if not exists perdure_interrupts (
  id varchar(36) not null,
  token varchar(36) not null,
  primary key (token, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- key is the id that the user chose. Null: the id is that of the row. attempt counts
-- attempts that failed. hook_items_created_idx serves lists, newest first.
create table if not exists perdure_hook_items (
  id varchar(36) primary key,
  `key` varchar(128),
  namespace varchar(128) not null,
  name varchar(128) not null,
  queue varchar(300) not null,
  payload longtext not null,
  priority smallint not null,
  policy text not null,
  max_attempts int not null,
  attempt int not null default 0,
  crashes int not null default 0,
  batch_limit int,
  error longtext,
  unit_id varchar(128) not null,
  trace text,
  created_at datetime(6) not null,
  next_attempt_at datetime(6),
  due_at datetime(6) not null,
  last_attempt_at datetime(6),
  unique key hook_items_key_key (`key`),
  key hook_items_created_idx (created_at, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- dead tells dead letters from the others: an index cannot have a condition here.
-- hook_ends_at_idx serves retention, hook_ends_dead_idx the list of dead letters.
create table if not exists perdure_hook_ends (
  id varchar(36) primary key,
  status varchar(16) not null check (status in ('completed', 'failed', 'quarantined', 'cancelled')),
  error longtext,
  worker varchar(128),
  created_at datetime(6) not null,
  began_at datetime(6),
  finished_at datetime(6) not null,
  dead tinyint as (case when status in ('failed', 'quarantined') then 1 else 0 end) stored,
  key hook_ends_at_idx (dead, finished_at),
  key hook_ends_dead_idx (dead, created_at, id)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- An id that is a UUID stays the id of the row. The others get ids in the order in which
-- they are due, after those that are taken. A second run finds the same ids.
insert into perdure_hook_items (id, `key`, namespace, name, queue, payload, priority, policy, max_attempts, attempt, crashes, batch_limit, error, unit_id, trace,
  created_at, next_attempt_at, due_at, last_attempt_at)
select coalesce(b.kept, concat('00000000-0000-7000-8000-', lpad(lower(hex(b.taken + b.place)), 12, '0'))), case when b.kept is null then b.id end,
  b.namespace, b.name, concat('hook', char(9 using utf8mb4), b.namespace, char(9 using utf8mb4), b.name), b.payload, b.priority, b.policy, b.max_attempts,
  b.attempts - case when b.status = 'completed' then 1 else 0 end, b.crashes, b.batch_limit, b.error, b.unit_id, b.trace, b.created_at, b.next_attempt_at,
  case when b.status = 'processing' then greatest(b.due_at, b.lease_expires_at) else b.due_at end, b.last_attempt_at
from (
  select h.*, row_number() over (order by h.due_at, h.id) as place,
    case when char_length(h.id) = 36 and h.id regexp '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then h.id end as kept,
    coalesce((
      select max(cast(conv(right(t.id, 12), 16, 10) as signed))
      from perdure_hooks_before t
      where t.id like '00000000-0000-7000-8000-%' and char_length(t.id) = 36 and t.id regexp '-[0-9a-f]{12}$'
    ), 0) as taken
  from perdure_hooks_before h
) b
on duplicate key update id = perdure_hook_items.id;

insert into perdure_hook_ends (id, status, error, worker, created_at, began_at, finished_at)
select i.id, b.status, b.error, b.worker, b.created_at, b.last_attempt_at, coalesce(b.finished_at, b.created_at)
from perdure_hook_items i
join perdure_hooks_before b on b.id = coalesce(i.`key`, i.id)
where b.status in ('completed', 'failed', 'quarantined', 'cancelled')
on duplicate key update id = perdure_hook_ends.id;

-- A hook that a process ran when the tables changed is due when its lease would have
-- ended: the process cannot record its outcome any more.
insert into perdure_ready (queue, suspect, priority, due_at, id)
select i.queue, case when i.batch_limit is null then 0 else 1 end, i.priority, i.due_at, i.id
from perdure_hook_items i
join perdure_hooks_before b on b.id = coalesce(i.`key`, i.id)
where b.status in ('pending', 'processing')
on duplicate key update id = perdure_ready.id;

update perdure_attempts a
join perdure_hook_items i on i.`key` = a.id
set a.id = i.id
where a.kind = 'hook';

create or replace sql security invoker view perdure_hooks as
select coalesce(h.`key`, h.id) as id, h.namespace, h.name, h.payload, coalesce(e.status, case when r.id is null then 'processing' else 'pending' end) as status,
  h.priority, h.policy, h.max_attempts, h.attempt + case when e.status = 'completed' then 1 else 0 end as attempts, h.crashes, h.batch_limit, coalesce(e.error, h.error) as error,
  h.unit_id, h.trace, h.created_at, case when e.id is null then h.next_attempt_at end as next_attempt_at, h.due_at,
  coalesce(e.began_at, (select l.claimed_at from perdure_leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1), h.last_attempt_at) as last_attempt_at,
  e.finished_at,
  coalesce(e.worker, (select l.worker from perdure_leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1)) as worker,
  (select l.expires_at from perdure_leases l where e.id is null and r.id is null and locate(h.id, l.ids) > 0 order by l.seq desc limit 1) as lease_expires_at
from perdure_hook_items h
left join perdure_hook_ends e on e.id = h.id
left join perdure_ready r on r.queue = h.queue and r.suspect = case when h.batch_limit is null then 0 else 1 end and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id;

drop table if exists perdure_hooks_before;
