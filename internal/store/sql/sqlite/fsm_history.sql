-- The history of instances, on SQLite.

-- name: TransitionInsert
insert into perdure.transitions (instance_id, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at)
select o.value->>0, o.value->>1, o.value->>2, o.value->>3, o.value->>4, o.value->>5, o.value->>6, ?1, ?3 - (o.value->>7), ?3
from jsonb_each(?2) o
