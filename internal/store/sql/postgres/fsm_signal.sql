-- Signals, on PostgreSQL.

-- name: SignalInsert
with remembered as (
  insert into perdure.signal_keys (target_id, name, dedup_key)
  select $1::uuid, $2, $4
  where $4::text is not null
  on conflict do nothing
  returning 1
)
insert into perdure.signals (target_id, name, payload, created_at)
select $1::uuid, $2, $3::json, coalesce($5::timestamptz, now())
where $4::text is null or exists (select 1 from remembered)

-- name: SignalWake
-- A duplicate does not wake the instance: the original signal was seen, or woke it
-- before.
with woken as (
  delete from perdure.waiting w
  using perdure.instances i
  where w.id = $1::uuid and $2 = any(w.names) and i.id = w.id
    and exists (
      select 1
      from perdure.signals s
      where s.target_id = w.id and s.name = $2 and (i.seen is null or s.seq not in (select json_array_elements_text(i.seen)::bigint))
    )
  returning w.id
), due as (
  update perdure.instances i
  set due_at = coalesce($3::timestamptz, now()), timed_out = false
  from woken
  where i.id = woken.id
  returning i.queue, i.priority, i.due_at, i.id
)
insert into perdure.ready (queue, priority, due_at, id)
select queue, priority, due_at, id
from due
returning queue
