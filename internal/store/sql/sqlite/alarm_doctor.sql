-- The invariants of alarms only, on SQLite.

-- name: AlarmDoctorStray
-- A removed alarm has no ready row.
select r.id, 'ready of no alarm'
from perdure.ready r
where r.queue > 'alarm' || char(9) and r.queue < 'alarm' || char(10) and not exists (select 1 from perdure.alarm_items h where h.id = r.id)
