-- Inserts a hook and makes it ready. Returns whether it was inserted. If key is not null, no
-- hook is inserted if the key is taken.
create function perdure.sql_hook(item uuid, key text, namespace text, name text, payload text, options jsonb) returns boolean
language plpgsql as $$
#variable_conflict use_column
declare
  lane text := concat_ws(E'\t', 'hook', sql_hook.namespace, sql_hook.name);
  policy jsonb := perdure.sql_retry(sql_hook.options);
  urgency smallint := perdure.sql_priority(sql_hook.options);
  due timestamptz := greatest(perdure.sql_due(sql_hook.options), now());
begin
  insert into perdure.hook_items (id, key, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, next_attempt_at, due_at)
  values (sql_hook.item, sql_hook.key, sql_hook.namespace, sql_hook.name, lane, sql_hook.payload::json, urgency, policy::json, (policy -> 'max_attempts')::integer,
    'sql/' || pg_current_xact_id(), now(), case when due > now() then due end, due)
  on conflict (key) do nothing;
  if not found then
    return false;
  end if;
  insert into perdure.ready (queue, priority, due_at, id) values (lane, urgency, due, sql_hook.item);
  perform perdure.sql_mark();
  return true;
end $$;

-- Triggers a hook in the transaction of the caller: the handler runs after the commit.
-- Options: id, if_absent, priority, at, delay, retry. Returns the id, and whether a hook with
-- the id existed, in which case nothing was triggered.
create function perdure.trigger(namespace text, hook text, payload jsonb default null, options jsonb default '{}', out id text, out duplicate boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  o jsonb := perdure.sql_options(trigger.options, array['id', 'if_absent', 'priority', 'at', 'delay', 'retry']);
  item uuid := perdure.sql_new_id();
  absent boolean := perdure.sql_flag(o, 'if_absent');
begin
  perform perdure.sql_name('namespace', trigger.namespace);
  perform perdure.sql_name('hook', trigger.hook);
  if trigger.namespace = 'actor' then
    perform perdure.sql_invalid('namespace', 'must not be actor, which has the effects of actors', 'Use perdure.send_event.');
  end if;
  id := perdure.sql_key_option(o, 'id', 128);
  if absent and id is null then
    perform perdure.sql_invalid('option if_absent', 'must be set with id');
  end if;
  duplicate := false;
  if id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    duplicate := exists (select from perdure.hook_items h where h.key is null and h.id = trigger.id::uuid);
  end if;
  if not duplicate then
    duplicate := not perdure.sql_hook(item, id, trigger.namespace, trigger.hook, perdure.sql_json('payload', trigger.payload), o);
  end if;
  if duplicate and not absent then
    raise exception 'hook % already exists', id using errcode = 'unique_violation', hint = 'Set the option if_absent to ignore it.';
  end if;
  id := coalesce(id, item::text);
end $$;

-- Schedules an alarm in the transaction of the caller, replacing an alarm with the same id.
-- Options: actor_type, actor_id, if_absent, priority, at, delay, every, missed, max_missed,
-- retry. Returns whether an alarm with the id existed; with if_absent it is left as it is.
create function perdure.schedule_alarm(alarm text, type text, payload jsonb default null, options jsonb default '{}', out existed boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  o jsonb := perdure.sql_options(schedule_alarm.options, array['actor_type', 'actor_id', 'if_absent', 'priority', 'at', 'delay', 'every', 'missed', 'max_missed', 'retry']);
  a perdure.alarm_items;
begin
  a.alarm_id := perdure.sql_key('alarm', schedule_alarm.alarm, 256);
  a.actor_type := coalesce(perdure.sql_name_option(o, 'actor_type'), '');
  a.actor_id := coalesce(perdure.sql_key_option(o, 'actor_id'), '');
  a.type := perdure.sql_name('type', schedule_alarm.type);
  if (a.actor_type = '') <> (a.actor_id = '') then
    perform perdure.sql_invalid('options', 'must have actor_type and actor_id, or neither');
  elsif starts_with(a.type, 'perdure.') or a.type = 'webhook' then
    perform perdure.sql_invalid('type', 'must not be webhook or start with perdure., which SQL cannot schedule', 'Schedule such alarms in Go or with the API.');
  end if;
  a.id := perdure.sql_new_id();
  a.queue := E'alarm\t' || a.type;
  a.priority := perdure.sql_priority(o);
  a.sequence := extract(epoch from clock_timestamp()) * 1000000;
  a.payload := perdure.sql_json('payload', schedule_alarm.payload);
  a.policy := perdure.sql_retry(o);
  a.max_attempts := a.policy ->> 'max_attempts';
  a.due_at := perdure.sql_due(o);
  if o ? 'every' then
    a.every_us := extract(epoch from perdure.sql_delay(o, 'every')) * 1000000;
    if a.every_us <= 0 then
      perform perdure.sql_invalid('option every', 'must be positive');
    end if;
    a.base_at := perdure.sql_text(o, 'at')::timestamptz;
    a.due_at := coalesce(a.due_at, now() + a.every_us * interval '1 microsecond');
    a.missed := coalesce(perdure.sql_text(o, 'missed'), 'once');
    a.missed_cap := coalesce(perdure.sql_number(o, 'max_missed', 1, 10000), 100);
    if a.missed not in ('skip', 'once', 'all') then
      perform perdure.sql_invalid('option missed', 'must be skip, once or all');
    elsif o ? 'max_missed' and a.missed <> 'all' then
      perform perdure.sql_invalid('option max_missed', 'must be used with all only');
    end if;
  elsif o ?| array['missed', 'max_missed'] then
    perform perdure.sql_invalid('option missed', 'must be used with every only');
  end if;
  a.due_at := coalesce(a.due_at, now());
  existed := not perdure.sql_insert_alarm(a);
  if not existed or not perdure.sql_flag(o, 'if_absent') then
    if existed then
      perform perdure.sql_replace_alarm(a);
    end if;
    perform perdure.sql_mark();
  end if;
end $$;

-- Inserts an alarm, or locks the existing alarm with the same key. Returns whether it was
-- inserted.
create function perdure.sql_insert_alarm(n perdure.alarm_items) returns boolean
language plpgsql as $$
begin
  insert into perdure.alarm_items as a (id, actor_type, actor_id, alarm_id, type, queue, priority, sequence, payload, every_us, missed, missed_cap,
    policy, max_attempts, generation, due_at, occurs_at, base_at, created_at)
  values (n.id, n.actor_type, n.actor_id, n.alarm_id, n.type, n.queue, n.priority, n.sequence, n.payload, n.every_us, n.missed, n.missed_cap,
    n.policy, n.max_attempts, 1, n.due_at, n.due_at, case when n.every_us is not null then n.due_at end, now())
  on conflict (actor_type, actor_id, alarm_id) do update set generation = a.generation where false;
  if not found then
    return false;
  end if;
  insert into perdure.ready (queue, priority, due_at, id) values (n.queue, n.priority, n.due_at, n.id);
  return true;
end $$;

-- Replaces the existing alarm with the key of a new one, which is locked. A recurring alarm
-- with the same ticks keeps its place. A running alarm stays in its lease: its outcome makes it
-- ready.
create function perdure.sql_replace_alarm(n perdure.alarm_items) returns void
language sql as $$
  with old as (
    select a.id, a.queue, a.batch_limit, a.priority, a.due_at, a.dead,
      n.every_us is not null and a.type = n.type and a.dead is null and a.every_us is not distinct from n.every_us and a.cron is null and a.zone is null
        and a.base_at is not distinct from coalesce(n.base_at, a.base_at) as same
    from perdure.alarm_items a
    where a.actor_type = n.actor_type and a.actor_id = n.actor_id and a.alarm_id = n.alarm_id
  ), waited as (
    delete from perdure.ready r
    using old o
    where r.queue = o.queue and r.suspect = (o.batch_limit is not null) and r.priority = o.priority and r.due_at = o.due_at and r.id = o.id
    returning r.id
  ), changed as (
    update perdure.alarm_items a
    set type = n.type, queue = n.queue, priority = n.priority, payload = n.payload, missed = n.missed, missed_cap = n.missed_cap,
      policy = n.policy, max_attempts = n.max_attempts, webhook = null, trace = null, every_us = n.every_us, cron = null, zone = null, dead = null,
      sequence = case when o.same then a.sequence else n.sequence end,
      generation = a.generation + case when o.same then 0 else 1 end,
      due_at = case when o.same then a.due_at else n.due_at end,
      occurs_at = case when o.same then a.occurs_at else n.due_at end,
      base_at = case when o.same then a.base_at when n.every_us is not null then n.due_at end,
      caught_up = case when o.same then a.caught_up else 0 end,
      attempt = case when o.same then a.attempt else 0 end,
      error = case when o.same then a.error end,
      created_at = case when o.same then a.created_at else now() end,
      crashes = case when o.same or o.dead is null and w.id is null then a.crashes else 0 end,
      batch_limit = case when o.same or o.dead is null and w.id is null then a.batch_limit end
    from old o
    left join waited w on w.id = o.id
    where a.id = o.id
    returning a.queue, a.batch_limit is not null as suspect, a.priority, a.due_at, a.id, o.dead is not null or w.id is not null as waits
  )
  insert into perdure.ready (queue, suspect, priority, due_at, id)
  select queue, suspect, priority, due_at, id
  from changed
  where waits
$$;
