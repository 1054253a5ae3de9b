-- Alarms: everything that happens at a time. Those of kind machine are the delays
-- of actors; they are fired in the transaction of the actor's step and have no
-- claim. The others are claimed as all work is.
--
-- An alarm belongs to an actor, or to nobody (actor_type and actor_id are '').

create table perdure_alarms (
  actor_type text not null,
  actor_id text not null,
  kind text not null check (kind in ('machine', 'custom')),
  alarm_id text not null,
  type text not null,
  status text not null default 'pending'
    check (status in ('pending', 'processing', 'failed', 'quarantined')),
  priority integer not null default 0,
  -- When it is to be fired, or tried again.
  due_at integer not null,
  -- The time that it is for, which a retry does not change. Of machine delays: only
  -- once they were postponed because a process could not move their actor.
  occurs_at integer,
  -- Orders alarms that are due at the same time.
  sequence integer not null,
  payload text,
  -- Of machine delays: the actor in the tree that it is for, and which one of
  -- those that had the path. Of custom ones: how often it was scheduled.
  path text,
  generation integer,
  -- Of recurring ones: where the phase begins, what becomes of ticks that are
  -- missed while nobody listens, and how many late ones were fired in a row.
  every_us integer,
  cron text,
  zone text,
  base_at integer,
  missed text check (missed in ('skip', 'once', 'all')),
  missed_cap integer,
  caught_up integer not null default 0,
  policy text,
  max_attempts integer,
  attempts integer not null default 0,
  crashes integer not null default 0,
  error text,
  -- Where to say what becomes of it.
  webhook text,
  trace text,
  created_at integer not null,
  worker text,
  token text,
  lease_expires_at integer,
  primary key (actor_type, actor_id, kind, alarm_id),
  check ((status = 'processing') = (token is not null)),
  check ((status = 'processing') = (lease_expires_at is not null))
) strict;

-- Serves the delays of actors that are due, of the types that a process knows.
create index perdure_alarms_machine_idx on perdure_alarms (actor_type, due_at, actor_id) where kind = 'machine' and status = 'pending';

-- Serves the claim of those of users.
create index perdure_alarms_due_idx on perdure_alarms (type, priority, due_at, sequence) where kind = 'custom' and status = 'pending';

-- Serves the return of expired claims.
create index perdure_alarms_lease_idx on perdure_alarms (lease_expires_at) where status = 'processing';

-- Serves lists of those of users, and by its second condition, which always holds,
-- nothing else: a claim is to be left to the index above.
create index perdure_alarms_custom_idx on perdure_alarms (due_at, actor_type, actor_id, alarm_id) where kind = 'custom' and alarm_id <> '';

-- Serves what comes next, over all kinds.
create index perdure_alarms_next_idx on perdure_alarms (due_at, actor_type, actor_id, kind, alarm_id) where status = 'pending';

-- Serves the list of dead letters, and how many there are.
create index perdure_alarms_dead_idx on perdure_alarms (due_at, actor_type, actor_id, kind, alarm_id) where status in ('failed', 'quarantined');
