-- Pauses, see ADR 21. Claims read them in their own statements, so a pause holds for every claim
-- that begins after its commit.
create table if not exists perdure_pauses (
  -- What is paused: queue:, fsm:, hook: or alarm: and a name.
  target varchar(140) not null primary key,
  reason text not null,
  -- The operator or the program that paused it.
  actor varchar(300) not null,
  paused_at datetime(6) not null,
  -- The end of the pause. Null: until it is resumed.
  until_at datetime(6)
) engine=InnoDB default character set utf8mb4 collate {collation};
