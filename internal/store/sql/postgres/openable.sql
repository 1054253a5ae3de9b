-- Conditions that a claim adds once it has met a value whose key this process
-- lacks, on PostgreSQL. See openable.go.

-- name: Foreign
-- A value that is encrypted with a key that this process does not have.
coalesce(case when left({value}::text, 16) = '{"$sealed":"v1",' then {value} ->> 'key' not in ({ids}) end, false)

-- name: OpenableRow
not {foreign {of}}

-- name: OpenableInstance
-- A step reads the state, the signals, the journal, and the children of the last
-- fan-out.
not exists (
  select 1
  from perdure.instances o
  where o.id = {of} and {foreign o.state}
) and not exists (
  select 1
  from perdure.signals o
  where o.target_id = {of} and {foreign o.payload}
) and not exists (
  select 1
  from perdure.journal o
  where o.instance_id = {of} and {foreign o.result}
) and not exists (
  select 1
  from perdure.instances o
  join perdure.instances c on c.parent_id = o.id and c.parent_fanout in (o.fanout, -o.fanout)
  left join perdure.finished f on f.id = c.id
  where o.id = {of} and o.fanout > 0 and ({foreign f.result} or {foreign f.state} or f.state is null and {foreign c.state})
)

-- name: OpenableActor
-- A transition reads the input, the snapshot and all timers of the actor.
not exists (
  select 1
  from perdure.actors o
  where o.type = {of}.actor_type and o.id = {of}.actor_id and ({foreign o.input} or {foreign o.snapshot})
) and not exists (
  select 1
  from perdure.timers o
  where o.actor_type = {of}.actor_type and o.actor_id = {of}.actor_id and {foreign o.payload}
)

-- name: OpenableHook
not exists (
  select 1
  from perdure.hook_items o
  where o.id = {of} and {foreign o.payload}
)

-- name: OpenableAlarm
not exists (
  select 1
  from perdure.alarm_items o
  where o.id = {of} and {foreign o.payload}
)
