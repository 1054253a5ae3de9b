-- Alarm: statements of all databases. Marks such as {now ?} are explained in template.go.

-- name: Alarm.ClaimColumns
{text h.id}, h.actor_type, h.actor_id, h.alarm_id, h.type, h.priority, h.due_at, h.occurs_at, h.sequence, h.generation, h.payload,
  h.every_us, h.cron, h.zone, h.base_at, h.missed, h.missed_cap, h.caught_up, h.policy, h.max_attempts, h.attempt, h.crashes, h.error,
  h.webhook, h.trace, h.created_at

-- name: Alarm.Name
h.type

-- name: Alarm.Ends
select id, 'dead' from perdure.alarm_items where dead is not null

-- name: Alarm.Live
h.dead is null

-- name: Alarm.LockColumns
, h.generation
