-- name: OutboxInsertMany
-- One statement for the entries of a whole group.
insert into perdure.outbox (versionstamp, unit_id, payload, ref_map, created_at)
select versionstamp, unit_id, payload::json, ref_map::json, ?
from unnest(?::bytea[], ?::text[], ?::text[], ?::text[]) as entry (versionstamp, unit_id, payload, ref_map)
