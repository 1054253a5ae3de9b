-- Conditions that a claim adds once it has met a value without a key here, on
-- MySQL. See openable.go.

-- name: Foreign
-- A value that is encrypted with a key that this process does not have.
coalesce(case when left({value}, 16) = '{"$sealed":"v1",' then json_unquote(json_extract({value}, '$.key')) not in ({ids}) end, false)

-- name: OpenableRow
not {foreign {of}}

-- name: OpenableInstance
-- A step reads the state, the signals, and the children of the last fan-out. A limit, not
-- exists: MariaDB would read the whole tables.
(
  select 1
  from perdure.instances o
  where o.id = {of} and {foreign o.state}
  limit 1
) is null and (
  select 1
  from perdure.signals o
  where o.target_id = {of} and {foreign o.payload}
  limit 1
) is null and (
  select 1
  from perdure.instances o
  straight_join perdure.instances c on c.parent_id = o.id and c.parent_fanout in (o.fanout, 0 - o.fanout)
  left join perdure.finished f on f.id = c.id
  where o.id = {of} and o.fanout > 0 and ({foreign f.result} or {foreign f.state} or f.state is null and {foreign c.state})
  limit 1
) is null

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
