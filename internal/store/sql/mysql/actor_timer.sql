-- Timers of actors, and the records of timers that a process is about to fire, on MySQL.
-- While the process is alive, its record is locked by the transaction that fires the
-- timers. Tests pass the time as now; otherwise now is null and the server's clock decides.
-- A set is passed as JSON, with an array for each row. A line with only a semicolon
-- separates the statements of one name.
--
-- Ids of actors and timers are binary. JSON has only texts, so the ids are converted.
-- coalesce treats a zero date as null; a zero date counts as before all times.

-- name: TimerClaim
-- The actors are found before they are locked: MariaDB would also lock their timers.
select json_arrayagg(json_array(due.actor_type, convert(due.actor_id using utf8mb4))) into @perdure_due
from (
  select known.actor_type, known.actor_id
  from (
{each ?2}
    (
      select al.actor_type, al.actor_id, al.due_at
      from perdure.timers al force index (timers_due_idx)
      left join (
        select t.type, convert(t.id using binary) as id
        from perdure.firing f
        straight_join json_table(f.timers, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) t
        where f.worker <> ?5
      ) other on other.type = al.actor_type and other.id = al.actor_id
      where al.actor_type = ?2 and al.status = 'pending' and al.due_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) and al.batch_limit is null
        and other.type is null{openable Actor al}
      order by al.due_at
      limit 1000
    )
{end}
  ) known
  group by known.actor_type, known.actor_id
  order by min(known.due_at)
  limit 1000
) due
;
select json_arrayagg(json_array(free.type, convert(free.id using utf8mb4))) into @perdure_due
from (
  select a.type, a.id
  from json_table(@perdure_due, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) d
  straight_join perdure.actors a force index (primary) on a.type = d.type and a.id = convert(d.id using binary)
  limit ?3
  for update skip locked
) free
;
insert into perdure.firing (token, worker, suspect, claimed_at, expires_at, timers)
select ?4, ?5, 0, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) + interval ?6 microsecond, @perdure_due
from dual
where @perdure_due is not null
;
select timers, claimed_at
from perdure.firing
where token = ?4

-- name: TimerSuspectDue
select 1
from perdure.timers force index (timers_suspect_idx)
where is_suspect = 1 and status = 'pending' and due_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
limit 1

-- name: TimerSuspectList
-- Suspects with a large batch limit come first: they are the least suspicious.
select al.actor_type, al.actor_id, al.alarm_id, al.batch_limit
from perdure.timers al force index (timers_suspect_idx)
where al.is_suspect = 1 and al.status = 'pending' and al.due_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
  and al.actor_type in (select known.type from json_table(?2, '$[*]' columns (type varchar(128) collate {collation} path '$[0]')) known)
  and greatest(al.batch_limit, 1) >= ?5{openable Actor al}
  and not exists (
    select 1
    from perdure.firing f
    straight_join json_table(f.timers, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) t
    where f.worker <> ?4 and t.type = al.actor_type and convert(t.id using binary) = al.actor_id
  )
order by al.batch_limit desc, al.due_at
limit ?3
for update skip locked

-- name: FiringInsert
insert into perdure.firing (token, worker, suspect, claimed_at, expires_at, timers)
values (?1, ?2, ?3, coalesce(cast(?4 as datetime(6)), utc_timestamp(6)), coalesce(cast(?4 as datetime(6)), utc_timestamp(6)) + interval ?5 microsecond, ?6)

-- name: FiringDelete
delete from perdure.firing
where token = ?

-- name: FiringExpired
-- The records are found before they are locked: a locking scan of the index also locks the
-- first record that is not expired.
select f.token, f.worker, f.suspect, f.claimed_at, f.timers
from (
  select x.token
  from perdure.firing x force index (firing_expires_idx)
  where x.expires_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
  order by x.expires_at
  limit 10000
) o
straight_join perdure.firing f force index (primary) on f.token = o.token
where f.expires_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
limit ?2
for update skip locked

-- name: TimerLost
-- If only the actor was recorded, returns its timers that were due at that time.
select al.actor_type, al.actor_id, al.alarm_id, al.crashes, coalesce(al.batch_limit, 1)
from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', alarm_id varchar(512) path '$[2]')) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.type and al.actor_id = convert(o.id using binary)
where al.status = 'pending' and (
  al.alarm_id = convert(o.alarm_id using binary)
  or o.alarm_id = '' and al.batch_limit is null and coalesce(al.occurs_at, al.due_at, cast('0001-01-01 00:00:00' as datetime(6))) <= cast(?2 as datetime(6))
)

-- name: TimerReturn
-- The original time of a timer does not change. It is read first: the order in which an
-- update of joined tables sets columns is undefined.
update (
  select t.actor_type, t.actor_id, t.alarm_id, o.crashes, o.batch_limit, o.delay, o.error, coalesce(t.occurs_at, t.due_at, cast('0001-01-01 00:00:00' as datetime(6))) as at
  from json_table(?1, '$[*]' columns (
    type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', alarm_id varchar(512) path '$[2]',
    crashes int path '$[3]', batch_limit int path '$[4]', delay bigint path '$[5]', error longtext path '$[6]'
  )) o
  straight_join perdure.timers t force index (primary) on t.actor_type = o.type and t.actor_id = convert(o.id using binary) and t.alarm_id = convert(o.alarm_id using binary)
  limit 1000000000
) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.actor_type and al.actor_id = o.actor_id and al.alarm_id = o.alarm_id
set al.crashes = o.crashes, al.batch_limit = o.batch_limit, al.error = o.error,
  al.status = case when o.error is null then al.status else 'quarantined' end,
  al.occurs_at = case when o.delay > 0 then o.at else al.occurs_at end,
  al.due_at = case when o.delay > 0 then coalesce(cast(?2 as datetime(6)), utc_timestamp(6)) + interval o.delay microsecond else al.due_at end

-- name: TimerDue
select due.actor_type, due.actor_id, due.alarm_id, due.payload, due.at, due.crashes, due.batch_limit is not null
from (
  select al.actor_type, al.actor_id, al.alarm_id, al.payload, coalesce(al.occurs_at, al.due_at, cast('0001-01-01 00:00:00' as datetime(6))) as at, al.crashes, al.batch_limit,
    row_number() over (partition by al.actor_type, al.actor_id order by coalesce(al.occurs_at, al.due_at, cast('0001-01-01 00:00:00' as datetime(6))), al.sequence) as place
  from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) o
  straight_join perdure.timers al force index (primary) on al.actor_type = o.type and al.actor_id = convert(o.id using binary)
  where al.status <> 'quarantined' and coalesce(al.occurs_at, al.due_at, cast('0001-01-01 00:00:00' as datetime(6))) <= coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
) due
where due.place <= ?3
order by due.actor_type, due.actor_id, due.place

-- name: TimerPut
insert into perdure.timers (actor_type, actor_id, alarm_id, type, due_at, sequence, payload, path, generation, created_at)
select o.type, o.id, o.alarm_id, o.event, cast('1970-01-01 00:00:00' as datetime(6)) + interval o.due microsecond, o.sequence, o.payload, o.at_path, o.generation,
  cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond
from json_table(?1, '$[*]' columns (
  type varchar(128) path '$[0]', id varchar(512) path '$[1]', alarm_id varchar(512) path '$[2]', event longtext path '$[3]', due bigint path '$[4]',
  sequence bigint path '$[5]', payload longtext path '$[6]', at_path longtext path '$[7]', generation bigint path '$[8]', at bigint path '$[9]'
)) o
on duplicate key update type = values(type), due_at = values(due_at), sequence = values(sequence), payload = values(payload),
  path = values(path), generation = values(generation), created_at = values(created_at), status = 'pending', occurs_at = null,
  crashes = 0, batch_limit = null, error = null

-- name: TimerDelete
delete al
from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', alarm_id varchar(512) path '$[2]')) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.type and al.actor_id = convert(o.id using binary) and al.alarm_id = convert(o.alarm_id using binary)

-- name: TimerDeleteAll
-- Deletes the timers of one actor in a tree.
delete al
from json_table(?1, '$[*]' columns (
  type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', at_path longtext collate {collation} path '$[2]', generation bigint path '$[3]'
)) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.type and al.actor_id = convert(o.id using binary)
where al.path = o.at_path and al.generation = o.generation

-- name: TimerPark
-- Suspends the timers of actors, or resumes them. Timers that are quarantined themselves
-- have an error and are left unchanged.
update json_table(?2, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.type and al.actor_id = convert(o.id using binary)
set al.status = ?1
where al.error is null

-- name: TimerPostpone
-- Postpones the due timers of actors by the time that they have been due, within bounds.
-- The original time of a timer does not change, and is read first.
update (
  select t.actor_type, t.actor_id, t.alarm_id, coalesce(t.occurs_at, t.due_at, cast('0001-01-01 00:00:00' as datetime(6))) as at
  from json_table(?4, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) o
  straight_join perdure.timers t force index (primary) on t.actor_type = o.type and t.actor_id = convert(o.id using binary)
  where t.status = 'pending' and t.due_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
  limit 1000000000
) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.actor_type and al.actor_id = o.actor_id and al.alarm_id = o.alarm_id
set al.occurs_at = o.at,
  al.due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))
    + interval least(greatest(timestampdiff(microsecond, o.at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6))), ?2), ?3) microsecond

-- name: TimerNext
-- Returns the microseconds until a timer of an actor of one of the types is due.
select timestampdiff(microsecond, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), min(next.due_at))
from (
  select (
    select w.due_at
    from perdure.timers w force index (timers_due_idx)
    where w.actor_type = known.type and w.status = 'pending'{openable Actor w}
    order by w.due_at
    limit 1
  ) as due_at
  from json_table(?2, '$[*]' columns (type varchar(128) collate {collation} path '$[0]')) known
) next
having min(next.due_at) is not null

-- name: TimerList
-- Returns all timers of some actors, in the order in which they will fire.
select al.actor_type, al.actor_id, al.alarm_id, al.type, coalesce(al.occurs_at, al.due_at, cast('0001-01-01 00:00:00' as datetime(6))) as at, al.sequence, al.payload, al.path, al.generation, al.created_at, al.crashes, al.error
from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) o
straight_join perdure.timers al force index (primary) on al.actor_type = o.type and al.actor_id = convert(o.id using binary)
order by at, al.sequence, al.actor_type, al.actor_id
