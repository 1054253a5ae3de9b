-- The server's reads of alarms, on SQLite.

-- name: ClaimedAlarms
-- Returns a row if an unexpired lease holds an alarm of a type.
select count(*)
from (
  select 1
  from perdure.leases l, json_each(l.ids) held
  cross join perdure.alarm_items h on h.id = held.value
  where l.queue = ? and h.type = ? and l.expires_at > ?
    and h.dead is null
    and not exists (select 1 from perdure.ready r where r.queue = h.queue and r.suspect in (0, 1) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id)
  limit 1
) s
