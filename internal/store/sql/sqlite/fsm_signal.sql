-- Signals, on SQLite.

-- name: SignalInsert
insert into perdure.signal_keys (target_id, name, dedup_key)
select ?1, ?2, ?4
where ?4 is not null
on conflict do nothing
;
insert into perdure.signals (target_id, name, payload, created_at)
select ?1, ?2, ?3, ?5
where ?4 is null or changes() > 0

-- name: SignalWake
-- A duplicate does not wake the instance: the original signal was seen, or woke it
-- before.
update perdure.instances
set due_at = ?3, timed_out = 0
where id in (
  select w.id
  from perdure.waiting w
  where w.id = ?1 and ?2 in (select value from json_each(w.names))
    and exists (select 1 from perdure.signals s where s.target_id = w.id and s.name = ?2 and s.seq not in (select q.value from perdure.instances i, json_each(i.seen) q where i.id = ?1))
)
;
insert into perdure.ready (queue, priority, due_at, id)
select i.queue, i.priority, i.due_at, i.id
from perdure.waiting w
join perdure.instances i on i.id = w.id
where w.id = ?1 and ?2 in (select value from json_each(w.names))
  and exists (select 1 from perdure.signals s where s.target_id = w.id and s.name = ?2 and s.seq not in (select q.value from perdure.instances i, json_each(i.seen) q where i.id = ?1))
returning queue
;
delete from perdure.waiting
where id = ?1 and ?2 in (select value from json_each(names))
  and exists (select 1 from perdure.signals s where s.target_id = perdure.waiting.id and s.name = ?2 and s.seq not in (select q.value from perdure.instances i, json_each(i.seen) q where i.id = ?1))
