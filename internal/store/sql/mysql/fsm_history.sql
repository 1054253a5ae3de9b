-- The history of instances, on MySQL.

-- name: TransitionInsert
insert into perdure.transitions (instance_id, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at)
select o.id, o.step, o.outcome, o.next, o.attempt, o.crashes, o.error, ?1, coalesce(cast(?3 as datetime(6)), utc_timestamp(6)) - interval o.took microsecond, coalesce(cast(?3 as datetime(6)), utc_timestamp(6))
from json_table(?2, '$[*]' columns (
  id varchar(36) path '$[0]', step varchar(128) path '$[1]', outcome varchar(16) path '$[2]', next varchar(128) path '$[3]', attempt int path '$[4]', crashes int path '$[5]',
  error longtext path '$[6]', took bigint path '$[7]'
)) o

-- name: TransitionList
select seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at
from perdure.transitions
where instance_id = ?1 and seq > ?2
order by seq
limit ?3
