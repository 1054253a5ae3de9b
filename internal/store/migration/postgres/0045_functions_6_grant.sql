-- Returns the version of the functions and of the views.
create function perdure.api_version() returns integer
language sql immutable security definer set search_path = pg_catalog, pg_temp
return 1;

-- Lets a role call the functions for applications, and nothing else. Only the owner of the
-- schema may call it.
create function perdure.grant_application(role name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('grant usage on schema perdure to %I', role);
  execute format('grant execute on function perdure.start(text, jsonb, jsonb), perdure.signal(uuid, text, jsonb, jsonb), '
    'perdure.trigger(text, text, jsonb, jsonb), perdure.schedule_alarm(text, text, jsonb, jsonb), '
    'perdure.send_event(text, text, jsonb, jsonb), perdure.emit(text, text, jsonb), perdure.api_version() to %I', role);
end $$;

-- Lets a role read the views with a stable form, and nothing else. They show the payloads of
-- all work. Only the owner of the schema may call it.
create function perdure.grant_reader(role name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('grant usage on schema perdure to %I', role);
  execute format('grant select on perdure.v1_machines, perdure.v1_instances, perdure.v1_hooks, perdure.v1_alarms, perdure.v1_actors, perdure.v1_outbox to %I', role);
end $$;

-- Sets whether transactions that call the functions notify processes when they commit. If
-- not, work starts at the next poll of a process. Only the owner of the schema may call it.
create function perdure.notify_processes(enabled boolean) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  insert into perdure.settings (name, value) values ('sql.notify', case when enabled then 'on' else 'off' end)
  on conflict (name) do update set value = excluded.value
$$;

-- Functions are executable by every role when they are created.
do $$
declare
  f regprocedure;
begin
  for f in select p.oid from pg_proc p where p.pronamespace = 'perdure'::regnamespace loop
    execute format('revoke execute on function %s from public', f);
  end loop;
end $$;
