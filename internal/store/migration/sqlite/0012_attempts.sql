-- Attempts of hooks, alarms and instances that did not succeed. One that runs or has
-- succeeded is told by the row that it is of, so that success costs nothing here.
create table perdure_attempts (
  kind text not null check (kind in ('hook', 'alarm', 'instance')),
  -- What it was an attempt of; the actor is that of an alarm, if it has one.
  id text not null,
  actor_type text not null default '',
  actor_id text not null default '',
  -- Counts those that were recorded.
  seq integer not null,
  -- Of instances.
  step text,
  attempt integer not null,
  outcome text not null check (outcome in ('failed', 'lost', 'cancelled')),
  error text not null,
  worker text,
  began_at integer,
  ended_at integer not null,
  primary key (kind, id, actor_type, actor_id, seq)
) strict;

-- When a claim began, to tell how long an attempt took.
alter table perdure_leases add column claimed_at integer;
alter table perdure_alarms add column last_attempt_at integer;

-- Whether attempts of the alarm are recorded: its end is rarely about them.
alter table perdure_alarms add column logged integer not null default 0;

-- Alarms end in many ways; what is recorded of them ends with them.
create trigger perdure_alarms_forget_attempts after delete on perdure_alarms when old.logged begin delete from perdure_attempts where kind = 'alarm' and id = old.alarm_id and actor_type = old.actor_type and actor_id = old.actor_id; end;
