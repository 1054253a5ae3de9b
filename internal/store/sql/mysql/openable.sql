-- Conditions that a claim adds once it has met a value without a key here, on
-- MySQL. See openable.go.

-- name: Foreign
-- A value that is encrypted with a key that this process does not have.
coalesce(case when left({value}, 16) = '{"$sealed":"v1",' then json_unquote(json_extract({value}, '$.key')) not in ({ids}) end, false)

-- name: OpenableRow
not {foreign {of}}

-- name: OpenableHook
not exists (
  select 1
  from perdure.hook_items o
  where o.id = {of} and {foreign o.payload}
)
