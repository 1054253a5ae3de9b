-- Re-encryption of the alarms of users with another key, on PostgreSQL. A row is
-- named by its key as a JSON array.

-- name: AlarmSealed
select json_build_array(actor_type, actor_id, alarm_id)::text, actor_type, actor_id, alarm_id, payload::text
from perdure.alarm_items
where (actor_type, actor_id, alarm_id) > ($1::json->>0, $1::json->>1, $1::json->>2)
order by actor_type, actor_id, alarm_id
limit $2

-- name: AlarmReseal
update perdure.alarm_items
set payload = $1::json
where actor_type = $2::json->>0 and actor_id = $2::json->>1 and alarm_id = $2::json->>2 and payload::text = $3
