-- Pauses, see ADR 21. Claims read them in their own statements, so a pause holds for every claim
-- that begins after its commit.
create table perdure_pauses (
  -- What is paused: queue:, fsm:, hook:, alarm: or task: and a name.
  target text not null primary key,
  reason text not null,
  -- The operator or the program that paused it.
  actor text not null,
  paused_at integer not null,
  -- The end of the pause. Null: until it is resumed.
  until_at integer
) without rowid;
