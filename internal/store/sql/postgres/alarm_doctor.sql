-- The invariants of alarms only, on PostgreSQL.

-- name: AlarmDoctorStray
-- A removed alarm has no ready row.
select r.id::text, 'ready of no alarm'
from perdure.ready r
where starts_with(r.queue, 'alarm' || chr(9)) and not exists (select 1 from perdure.alarm_items h where h.id = r.id)
