-- Alarm: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: Alarm.Public
case when h.actor_type = '' then h.alarm_id else h.actor_type || '/' || h.actor_id || '/' || h.alarm_id end

-- name: Alarm.Released
 and dead is null

-- name: AlarmFind
-- Locks an alarm.
select {text id}
from perdure.alarm_items
where actor_type = ? and actor_id = ? and alarm_id = ?
{lock for update}

-- name: AlarmFire
update perdure.alarm_items
set occurs_at = least(occurs_at, {now ?1}), due_at = {now ?1}
where id = {uuid ?2}

-- name: AlarmSkip
update perdure.alarm_items
set due_at = {timestamptz ?1}, occurs_at = {timestamptz ?1}, caught_up = 0, attempt = 0, crashes = 0, batch_limit = null, error = null
where id = {uuid ?2}

-- name: AlarmRevive
-- Restarts dead letters, which are locked: they are due now, and no attempts are counted.
update perdure.alarm_items
set dead = null, attempt = 0, crashes = 0, batch_limit = null, due_at = {now ?}
where id {any uuid ?} and dead is not null

-- name: AlarmsDead
-- Dead letters that were due long ago. A quarantined recurring alarm is kept: it is also a
-- schedule.
select {text id}
from perdure.alarm_items
where dead is not null and due_at <= {now ?} - {us {bigint ?}} and every_us is null and cron is null
order by due_at
limit ?
{lock for update skip locked}
