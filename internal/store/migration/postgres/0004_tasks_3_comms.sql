-- comms, the business process that is shipped: e-mail and SMS. This file has
-- what both share; the two that follow are alike but for the channel.

create table comms.message (
  message_id bigint generated always as identity primary key,
  channel text not null check (channel in ('email', 'sms')),
  created_at timestamptz not null default queues.now(),
  unique (message_id, channel)
);

-- Facts are never changed: state is derived from what happened.
create function comms.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '%.% is append-only', tg_table_schema, tg_table_name using errcode = 'object_not_in_prerequisite_state';
end $$;

-- When a supervisor looks again: 5 seconds after it has begun an attempt, twice
-- that after each failure, and twice that each time it finds nothing new.
create function comms.supervisor_delay(failures bigint, idle_runs bigint) returns interval
language sql immutable
return least(interval '5 seconds' * power(2, least(failures + idle_runs, 20)), interval '10 minutes');
