-- Functions for applications in any language: they start work in the transaction of the
-- caller. This file makes the tables that the functions need; those that follow with the
-- same number make the functions and the views.
--
-- Functions run with the rights of their owner and with a fixed search path. A role needs
-- USAGE of the schema and EXECUTE of the functions, and no right on any table:
-- perdure.grant_application gives both.

-- Marks of transactions that called a function. Inserting a row lets a trigger run when the
-- transaction commits; the row is removed at once. Not logged: no row outlives its
-- transaction.
create table perdure.sql_marks (
  mark boolean
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

alter table perdure.sql_marks set unlogged;

-- Events that a transaction emits, until it commits. The entry of the outbox is written by a
-- trigger at that time, so that the counter of the outbox is locked last. Not logged: no row
-- outlives its transaction.
create table perdure.sql_events (
  -- The transaction.
  xid xid8 not null,
  seq bigint generated always as identity,
  topic text not null,
  key text not null,
  payload text not null,
  primary key (xid, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

alter table perdure.sql_events set unlogged;

-- Events for actors that wait for a process, in the order in which each actor gets them. The
-- event is the payload of a hook.
create table perdure.actor_inbox (
  seq bigint generated always as identity,
  actor_type text not null,
  actor_id text not null,
  -- The hook.
  item uuid primary key
);

-- Serves the events of an actor, in order.
create index actor_inbox_actor_idx on perdure.actor_inbox (actor_type, actor_id, seq);

-- The time of the last notification, in milliseconds since 1970. A sequence is not part of a
-- transaction: other sessions see it at once.
create sequence perdure.sql_notified as bigint;

-- Whether functions notify processes when their transaction commits: on or off.
insert into perdure.settings (name, value) values ('sql.notify', 'on');
