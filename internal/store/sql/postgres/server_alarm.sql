-- The server's reads of alarms, on PostgreSQL.

-- name: ClaimedAlarms
-- Returns a row if an unexpired lease holds an alarm of a type.
select count(*)
from (
  select 1
  from perdure.leases l
  cross join unnest(l.ids) as held (id)
  join perdure.alarm_items h on h.id = held.id
  where l.queue = ? and h.type = ? and l.expires_at > ?
    and h.dead is null
    and (select true from perdure.ready r where r.queue = h.queue and r.suspect = (h.batch_limit is not null) and r.priority = h.priority and r.due_at = h.due_at and r.id = h.id limit 1) is null
  limit 1
) s
