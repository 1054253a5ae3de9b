-- Re-encryption of the alarms of users with another key, on SQLite. A row is named
-- by its key as a JSON array.

-- name: AlarmSealed
select json_array(actor_type, actor_id, alarm_id), actor_type, actor_id, alarm_id, payload
from perdure.alarm_items
where (actor_type, actor_id, alarm_id) > (?1 ->> 0, ?1 ->> 1, ?1 ->> 2)
order by actor_type, actor_id, alarm_id
limit ?2

-- name: AlarmReseal
update perdure.alarm_items
set payload = ?1
where actor_type = ?2 ->> 0 and actor_id = ?2 ->> 1 and alarm_id = ?2 ->> 2 and payload = ?3
