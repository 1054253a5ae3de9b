-- The times of all tables.

-- name: TimesDoctor
-- No time is infinite.
select {text x.id}, 'instances.due_at'
from perdure.instances x
where {endless x.due_at}
union all
select {text x.id}, 'instances.deadline_at'
from perdure.instances x
where {endless x.deadline_at}
union all
select {text x.id}, 'instances.created_at'
from perdure.instances x
where {endless x.created_at}
union all
select {text x.id}, 'ready.due_at'
from perdure.ready x
where {endless x.due_at}
union all
select {text x.token}, 'leases.expires_at'
from perdure.leases x
where {endless x.expires_at}
union all
select {text x.id}, 'waiting.deadline_at'
from perdure.waiting x
where {endless x.deadline_at}
union all
select {text x.parent_id}, 'barriers.deadline_at'
from perdure.barriers x
where {endless x.deadline_at}
union all
select {text x.id}, 'deadlines.at'
from perdure.deadlines x
where {endless x.at}
union all
select {text x.id}, 'finished.finished_at'
from perdure.finished x
where {endless x.finished_at}
union all
select {text x.parent_id}, 'tree_ends.due_at'
from perdure.tree_ends x
where {endless x.due_at}
union all
select x.name, 'schedules.next_at'
from perdure.schedules x
where {endless x.next_at}
union all
select x.name, 'schedules.last_at'
from perdure.schedules x
where {endless x.last_at}
union all
select x.fsm, 'policies.since'
from perdure.policies x
where {endless x.since}
union all
select {text x.id}, 'hook_items.due_at'
from perdure.hook_items x
where {endless x.due_at}
union all
select {text x.id}, 'hook_items.next_attempt_at'
from perdure.hook_items x
where {endless x.next_attempt_at}
union all
select {text x.id}, 'hook_items.created_at'
from perdure.hook_items x
where {endless x.created_at}
union all
select {text x.id}, 'hook_ends.finished_at'
from perdure.hook_ends x
where {endless x.finished_at}
union all
select {text x.id}, 'alarm_items.due_at'
from perdure.alarm_items x
where {endless x.due_at}
union all
select {text x.id}, 'alarm_items.occurs_at'
from perdure.alarm_items x
where {endless x.occurs_at}
union all
select {text x.id}, 'alarm_items.base_at'
from perdure.alarm_items x
where {endless x.base_at}
union all
select x.actor_id, 'timers.due_at'
from perdure.timers x
where {endless x.due_at}
union all
select x.actor_id, 'timers.occurs_at'
from perdure.timers x
where {endless x.occurs_at}
union all
select x.token, 'firing.expires_at'
from perdure.firing x
where {endless x.expires_at}
union all
select x.id, 'actors.created_at'
from perdure.actors x
where {endless x.created_at}
union all
select x.id, 'actors.updated_at'
from perdure.actors x
where {endless x.updated_at}
union all
select x.name, 'outbox_consumers.updated_at'
from perdure.outbox_consumers x
where {endless x.updated_at}
union all
select x.name, 'outbox_consumers.lease_expires_at'
from perdure.outbox_consumers x
where {endless x.lease_expires_at}
union all
select x.name, 'outbox_consumers.retry_at'
from perdure.outbox_consumers x
where {endless x.retry_at}
union all
select x.consumer, 'outbox_dead.due_at'
from perdure.outbox_dead x
where {endless x.due_at}
union all
select x.id, 'nodes.seen_at'
from perdure.nodes x
where {endless x.seen_at}
union all
select {text x.id}, 'tokens.expires_at'
from perdure.tokens x
where {endless x.expires_at}
limit 1000
