-- Cancelling instances that have a cancel step, on MySQL.

-- name: InstanceCompensate
-- The instance continues with its cancel step and the state that it had. It waits for
-- nothing, and has no deadline any more.
update json_table(?2, '$[*]' columns (id varchar(36) collate {collation} path '$[0]', step varchar(128) path '$[1]', reason longtext path '$[2]')) o
straight_join perdure.instances i force index (primary) on i.id = o.id
set i.step = o.step, i.cancel_reason = o.reason, i.attempt = 0, i.failures = 0, i.crashes = 0, i.batch_limit = null, i.awaits = null, i.keeps = 0, i.seen = null,
  i.timed_out = 0, i.dropped = null, i.rerun = 0, i.wait = null, i.error = null, i.deadline_at = null, i.due_at = coalesce(cast(?1 as datetime(6)), utc_timestamp(6))

-- name: CancelLease
-- A step of the instance is still running. This lease holds the instance until the process
-- that runs the step has ended it, or is lost.
insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
select o.token, concat('cancel:', o.token), o.queue, 0, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)), coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) + interval ?1 microsecond, json_array(o.id)
from json_table(?2, '$[*]' columns (token varchar(36) path '$[0]', queue varchar(300) path '$[1]', id varchar(36) path '$[2]')) o

-- name: CancelLeaseTake
-- The leases that hold instances for their cancel step. They are found before they are
-- locked, so that no other lease is.
select json_unquote(json_extract(l.ids, '$[0]')), l.token
from (
  select x.token
  from perdure.leases x
  straight_join json_table(x.ids, '$[*]' columns (id varchar(36) collate {collation} path '$')) held
  straight_join json_table(?1, '$[*]' columns (id varchar(36) collate {collation} path '$[0]')) o on o.id = held.id
  left join perdure.interrupts taken on taken.token = x.token and taken.id = held.id
  where x.worker like 'cancel:%' and x.worker = concat('cancel:', x.token) and taken.id is null
  order by x.token
  limit 1000000000
) o
straight_join perdure.leases l force index (leases_token_key) on l.token = o.token
for update

-- name: PartitionQueued
select p.id
from json_table(?1, '$[*]' columns (name varchar(512) collate {collation} path '$[0]', id varchar(36) collate {collation} path '$[1]')) o
straight_join perdure.partition_waiting p force index (partition_waiting_id_key) on p.id = o.id
where p.`key` = o.name
