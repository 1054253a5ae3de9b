-- A hash of the event and its caller, so that a key that is used for another event is refused. Null:
-- an older version of the program stored the key.
alter table perdure.actor_keys add column digest text;
