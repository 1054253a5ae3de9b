-- Attempts of hooks, alarms and instances that did not succeed. One that runs or has
-- succeeded is told by the row that it is of, so that success costs nothing here.
create table perdure.attempts (
  kind text not null check (kind in ('hook', 'alarm', 'instance')),
  -- What it was an attempt of; the actor is that of an alarm, if it has one.
  id text not null,
  actor_type text not null default '',
  actor_id text not null default '',
  -- Counts those that were recorded.
  seq bigint not null,
  -- Of instances.
  step text,
  attempt integer not null,
  outcome text not null check (outcome in ('failed', 'lost', 'cancelled')),
  error text not null,
  worker text,
  began_at timestamptz,
  ended_at timestamptz not null,
  primary key (kind, id, actor_type, actor_id, seq)
);

-- When a claim began, to tell how long an attempt took.
alter table perdure.leases add column claimed_at timestamptz;
alter table perdure.alarms add column last_attempt_at timestamptz;

-- Whether attempts of the alarm are recorded: its end is rarely about them.
alter table perdure.alarms add column logged boolean not null default false;

-- Alarms end in many ways; what is recorded of them ends with them.
create function perdure.forget_alarm_attempts() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  delete from perdure.attempts
  where kind = 'alarm' and id = old.alarm_id and actor_type = old.actor_type and actor_id = old.actor_id;
  return null;
end $$;

create trigger forget_attempts after delete on perdure.alarms
for each row when (old.logged) execute function perdure.forget_alarm_attempts();
