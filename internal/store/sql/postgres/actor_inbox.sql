-- Events that SQL functions have sent to actors, on PostgreSQL.

-- name: ActorInboxEarlier
-- Returns the events that the same actor must get before the event of a hook, oldest first.
select h.id::text, h.payload::text
from perdure.actor_inbox mine
join perdure.actor_inbox b on b.actor_type = mine.actor_type and b.actor_id = mine.actor_id and b.seq < mine.seq
join perdure.hook_items h on h.id = b.item
where mine.item = ?::uuid and not exists (select 1 from perdure.hook_ends e where e.id = b.item)
order by b.seq
limit ?

-- name: ActorInboxRemove
delete from perdure.actor_inbox
where item = any(?::uuid[])

-- name: ActorInboxSweep
-- Removes events whose hooks have finished without a handler: cancelled, quarantined, or
-- removed.
delete from perdure.actor_inbox
where item in (
  select b.item
  from perdure.actor_inbox b
  left join perdure.hook_items h on h.id = b.item
  left join perdure.hook_ends e on e.id = b.item
  where h.id is null or e.id is not null
  limit ?
)
