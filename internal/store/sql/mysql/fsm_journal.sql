-- The journal of durable functions, on MySQL.

-- name: JournalInsert
insert into perdure.journal (instance_id, `key`, seq, kind, attempt, result, error, worker, began_at, ended_at)
select o.id, o.name, o.seq, o.kind, o.attempt, o.result, o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took + o.ago microsecond,
  coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.ago microsecond
from json_table(?2, '$[*]' columns (
  id varchar(36) path '$[0]', name varchar(512) path '$[1]', seq int path '$[2]', kind int path '$[3]', attempt int path '$[4]', result longtext path '$[5]', error longtext path '$[6]',
  took bigint path '$[7]', ago bigint path '$[8]'
)) o

-- name: JournalFail
-- The failures of a step are one row, which has the last failure.
insert into perdure.journal (instance_id, `key`, seq, kind, attempt, result, error, worker, began_at, ended_at)
select o.id, o.name, o.seq, o.kind, o.attempt, o.result, o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took + o.ago microsecond,
  coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.ago microsecond
from json_table(?2, '$[*]' columns (
  id varchar(36) path '$[0]', name varchar(512) path '$[1]', seq int path '$[2]', kind int path '$[3]', attempt int path '$[4]', result longtext path '$[5]', error longtext path '$[6]',
  took bigint path '$[7]', ago bigint path '$[8]'
)) o
on duplicate key update attempt = values(attempt), result = values(result), error = values(error), worker = values(worker), began_at = values(began_at), ended_at = values(ended_at)

-- name: JournalRead
select j.instance_id, j.`key`, j.seq, j.kind, j.attempt, j.result, j.error, j.worker, j.began_at, j.ended_at
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.journal j force index (primary) on j.instance_id = o.id

-- name: JournalDelete
delete j
from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.journal j force index (primary) on j.instance_id = o.id

-- name: JournalReopen
-- Removes the failures. If compensation has begun, only its own: the function must fail again.
delete j
from (
  select o.id, exists (select 1 from perdure.journal u where u.instance_id = o.id and left(u.`key`, 1) = '~') as undoing
  from json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
  group by o.id
) o
straight_join perdure.journal j force index (primary) on j.instance_id = o.id
where (j.error is not null or j.kind = 3) and (left(j.`key`, 1) = '~' or not o.undoing)

-- name: InstanceUncancel
-- A function whose compensation is complete (~@) is not cancelled any more.
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.cancel_reason = null
where i.cancel_reason is not null and exists (select 1 from perdure.journal j where j.instance_id = i.id and j.`key` = '~@')

-- name: InstanceForgive
update json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.crashes = 0, i.batch_limit = null

-- name: JournalSealed
select json_array(instance_id, `key`), instance_id, `key`, result
from perdure.journal
where result is not null and (instance_id, `key`) > (json_unquote(json_extract(?1, '$[0]')), json_unquote(json_extract(?1, '$[1]')))
order by instance_id, `key`
limit ?2

-- name: JournalReseal
update perdure.journal
set result = ?1
where instance_id = json_unquote(json_extract(?2, '$[0]')) and `key` = json_unquote(json_extract(?2, '$[1]')) and result = ?3
