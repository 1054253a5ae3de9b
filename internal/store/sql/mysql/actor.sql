-- The transitions of actors, many in one statement, and reads of actors and stored
-- statecharts, on MySQL. The rows of actors are locked first, in order; every later
-- statement sees the changes that were committed before. Tests pass the time as now;
-- otherwise now is null and the server's clock decides. A set is passed as JSON, with an
-- array for each row. A line with only a semicolon separates the statements of one name.
--
-- Ids of actors are binary. JSON has only texts, so the ids are converted. Times in sets
-- are microseconds since 1970.

-- name: ActorEnter
-- Inserts the rows of new actors, which locks them. An existing actor is left unchanged;
-- its sequence shows that it existed.
insert into perdure.actors (type, id, incarnation, status, machine, sequence, states, origin, caller_kind, caller_id, input, created_at, updated_at)
select n.type, n.id, n.incarnation, 'active', n.machine, 0, '', n.origin, n.caller_kind, n.caller_id, n.input,
  coalesce(cast(?2 as datetime(6)), utc_timestamp(6)), coalesce(cast(?2 as datetime(6)), utc_timestamp(6))
from json_table(?1, '$[*]' columns (
  type varchar(128) collate {collation} path '$[0]', id varchar(512) collate {collation} path '$[1]', incarnation varchar(64) path '$[2]', machine bigint path '$[3]',
  origin varchar(16) path '$[4]', caller_kind varchar(16) path '$[5]', caller_id varchar(512) path '$[6]', input longtext path '$[7]'
)) n
order by n.type, n.id
on duplicate key update type = perdure.actors.type

-- name: ActorLeave
-- Removes the rows of actors that could not be started.
delete a
from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]')) o
straight_join perdure.actors a force index (primary) on a.type = o.type and a.id = convert(o.id using binary)
where a.sequence = 0

-- name: ActorLock
-- Locks in order, so that two transactions cannot deadlock. Omits the snapshots that the
-- caller has.
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), a.reason,
  case when a.snapshot_sequence <> o.has then a.snapshot_sequence end, case when a.snapshot_sequence <> o.has then a.snapshot end, a.checksum
from (
  select wanted.type, wanted.id, wanted.has
  from json_table(?2, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) collate {collation} path '$[1]', has bigint path '$[2]')) wanted
  order by wanted.type, wanted.id
  limit 1000000000
) o
straight_join perdure.actors a force index (primary) on a.type = o.type and a.id = convert(o.id using binary)
for update

-- name: ActorLockFree
select a.type, a.id, a.incarnation, a.status, a.machine, a.sequence, a.input, a.updated_at, coalesce(cast(?1 as datetime(6)), utc_timestamp(6)), a.reason,
  case when a.snapshot_sequence <> o.has then a.snapshot_sequence end, case when a.snapshot_sequence <> o.has then a.snapshot end, a.checksum
from json_table(?2, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', has bigint path '$[2]')) o
straight_join perdure.actors a force index (primary) on a.type = o.type and a.id = convert(o.id using binary)
for update skip locked

-- name: ActorKeyList
select k.actor_type, k.actor_id, k.key, k.sequence, k.digest
from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', name varchar(512) path '$[2]')) o
straight_join perdure.actor_keys k force index (primary) on k.actor_type = o.type and k.actor_id = convert(o.id using binary) and k.key = convert(o.name using binary)

-- name: ActorStep
-- An actor whose transition failed keeps its value and its snapshot.
update json_table(?1, '$[*]' columns (
  type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', status varchar(16) path '$[2]', machine bigint path '$[3]', sequence bigint path '$[4]',
  value longtext path '$[5]', states longtext path '$[6]', reason longtext path '$[7]', at bigint path '$[8]', snapshot longtext path '$[9]', checksum varchar(128) path '$[10]'
)) o
straight_join perdure.actors a force index (primary) on a.type = o.type and a.id = convert(o.id using binary)
set a.status = o.status, a.machine = o.machine, a.sequence = o.sequence, a.value = coalesce(o.value, a.value),
  a.states = case when o.value is null then a.states else o.states end, a.reason = o.reason,
  a.updated_at = cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond,
  a.snapshot = coalesce(o.snapshot, a.snapshot), a.checksum = coalesce(o.checksum, a.checksum),
  a.snapshot_sequence = case when o.snapshot is null then a.snapshot_sequence else o.sequence end

-- name: ActorLogInsert
insert into perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, `key`, said, value, checksum, at, recorded_at)
select o.type, o.id, o.sequence, o.kind, o.event, o.caller_kind, o.caller_id, o.at_path, o.generation, o.name, o.said, o.value, o.checksum,
  cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond, cast('1970-01-01 00:00:00' as datetime(6)) + interval o.recorded_at microsecond
from json_table(?1, '$[*]' columns (
  type varchar(128) path '$[0]', id varchar(512) path '$[1]', sequence bigint path '$[2]', kind varchar(32) path '$[3]', event longtext path '$[4]',
  caller_kind varchar(16) path '$[5]', caller_id varchar(512) path '$[6]', at_path longtext path '$[7]', generation bigint path '$[8]', name varchar(512) path '$[9]',
  said longtext path '$[10]', value longtext path '$[11]', checksum varchar(128) path '$[12]', at bigint path '$[13]', recorded_at bigint path '$[14]'
)) o

-- name: ActorKeyInsert
insert into perdure.actor_keys (actor_type, actor_id, `key`, sequence, created_at, digest)
select o.type, o.id, o.name, o.sequence, cast('1970-01-01 00:00:00' as datetime(6)) + interval o.at microsecond, o.digest
from json_table(?1, '$[*]' columns (
  type varchar(128) path '$[0]', id varchar(512) path '$[1]', name varchar(512) path '$[2]', sequence bigint path '$[3]', at bigint path '$[4]', digest varchar(64) path '$[5]'
)) o

-- name: CheckpointInsert
insert into perdure.checkpoints (actor_type, actor_id, sequence, machine, snapshot, timers, checksum)
select o.type, o.id, o.sequence, o.machine, o.snapshot, o.timers, o.checksum
from json_table(?1, '$[*]' columns (
  type varchar(128) path '$[0]', id varchar(512) path '$[1]', sequence bigint path '$[2]', machine bigint path '$[3]', snapshot longtext path '$[4]',
  timers longtext path '$[5]', checksum varchar(128) path '$[6]'
)) o
on duplicate key update sequence = perdure.checkpoints.sequence

-- name: ActorImport
-- Not "on duplicate key update": the update would count as a row.
insert ignore into perdure.imports (actor_type, actor_id, imported_at)
values (?1, ?2, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)))

-- name: MachineInsert
-- A document that is already the newest is not stored again. If two processes store it
-- concurrently, the unique key rejects one of them.
insert into perdure.machines (name, version, document, options, checksum, created_at)
select ?1, coalesce(max(m.version), 0) + 1, ?2, ?3, ?4, coalesce(cast(?5 as datetime(6)), utc_timestamp(6))
from perdure.machines m
where m.name = ?1
having coalesce((select n.checksum from perdure.machines n where n.name = ?1 order by n.version desc limit 1), '') <> ?4

-- name: ActorLogPrune
-- Keeps the newest checkpoint that is old enough, and the log after it.
select json_arrayagg(json_array(o.type, o.id, (
  select max(c.sequence)
  from perdure.checkpoints c
  where c.actor_type = o.type and c.actor_id = convert(o.id using binary) and c.sequence <= o.until
))) into @perdure_prune
from json_table(?1, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', until bigint path '$[2]')) o
;
delete c
from json_table(@perdure_prune, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', sequence bigint path '$[2]')) o
straight_join perdure.checkpoints c force index (primary) on c.actor_type = o.type and c.actor_id = convert(o.id using binary) and c.sequence < o.sequence
;
delete l
from json_table(@perdure_prune, '$[*]' columns (type varchar(128) collate {collation} path '$[0]', id varchar(512) path '$[1]', sequence bigint path '$[2]')) o
straight_join perdure.actor_log l force index (primary) on l.actor_type = o.type and l.actor_id = convert(o.id using binary) and l.sequence <= o.sequence

-- name: ActorKeyPurge
delete from perdure.actor_keys
where created_at <= coalesce(cast(?1 as datetime(6)), utc_timestamp(6)) - interval ?2 microsecond
order by created_at
limit ?3

-- name: ActorDelete
-- Deletes everything that is stored of an actor, except its effects.
delete from perdure.actor_log where actor_type = ?1 and actor_id = ?2
;
delete from perdure.actor_keys where actor_type = ?1 and actor_id = ?2
;
delete from perdure.checkpoints where actor_type = ?1 and actor_id = ?2
;
delete from perdure.timers where actor_type = ?1 and actor_id = ?2
;
delete from perdure.tokens where kind = 'actor' and actor_type = ?1 and actor_id = ?2
;
delete from perdure.actors where type = ?1 and id = ?2
