-- Lets processes look for work when the transaction commits. The row is removed at once; its
-- trigger still runs. A savepoint that is rolled back takes the mark with it.
create function perdure.sql_mark() returns void
language plpgsql as $$
declare
  place tid;
begin
  if current_setting('perdure.marked', true) is distinct from pg_current_xact_id()::text then
    insert into perdure.sql_marks (mark) values (true) returning ctid into place;
    delete from perdure.sql_marks where ctid = place;
    perform set_config('perdure.marked', pg_current_xact_id()::text, true);
  end if;
end $$;

-- Runs when a transaction commits. NOTIFY takes a lock that all transactions with a NOTIFY
-- share until they have committed. So a transaction leaves it out if another one has notified
-- less than 25 ms ago: processes look again for 100 ms after a notification.
create function perdure.sql_wake() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  ms bigint := extract(epoch from clock_timestamp()) * 1000;
begin
  if abs(ms - (select last_value from perdure.sql_notified)) >= 25
    and exists (select from perdure.settings where name = 'sql.notify' and value = 'on') then
    perform setval('perdure.sql_notified', ms);
    perform pg_notify('perdure', 'sql');
  end if;
  return null;
end $$;

create constraint trigger wake after insert on perdure.sql_marks
deferrable initially deferred for each row execute function perdure.sql_wake();

-- Starts an instance of a state machine in the transaction of the caller. The newest
-- version, its first step and its queue are those that a process has registered. Options:
-- version, id, if_absent, queue, priority, at, delay, deadline, partition_key, unique_key,
-- unique_scope, unique_across, step. Returns the id, and whether an instance with the id or
-- the unique key existed, in which case nothing was started.
create function perdure.start(machine text, state jsonb, options jsonb default '{}', out id uuid, out duplicate boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  if start.options <> '{}' then
    select s.id, s.duplicate into start.id, start.duplicate from perdure.sql_start(start.machine, start.state, start.options) s;
  else
    duplicate := false;
    with new as (
      insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at)
      select perdure.sql_new_id(), f.fsm, f.version, f.first_step, perdure.sql_json('state', start.state)::json, f.queue, 0, now(), now()
      from perdure.definitions f
      where f.fsm = start.machine
      order by f.version desc
      limit 1
      returning queue, priority, due_at, id
    )
    insert into perdure.ready (queue, priority, due_at, id)
    select queue, priority, due_at, id
    from new
    returning id into start.id;
    if not found then
      perform perdure.sql_unknown_machine(start.machine);
    end if;
  end if;
  if not duplicate then
    perform perdure.sql_mark();
  end if;
end $$;

create function perdure.sql_unknown_machine(machine text, version integer default null) returns void
language plpgsql as $$
begin
  raise exception 'machine % is not known', concat(to_json(machine), ' version ' || version) using errcode = 'no_data_found',
    hint = 'A machine is known after a process has registered its definition. perdure.v1_machines lists all machines.';
end $$;

-- Starts an instance with options.
create function perdure.sql_start(machine text, state jsonb, options jsonb, out id uuid, out duplicate boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  o jsonb := perdure.sql_options(sql_start.options, array['version', 'id', 'if_absent', 'queue', 'priority', 'at', 'delay', 'deadline', 'partition_key', 'unique_key',
    'unique_scope', 'unique_across', 'step']);
  wanted integer := perdure.sql_number(o, 'version', 1, 2147483647);
  chosen text := perdure.sql_text(o, 'id');
  absent boolean := perdure.sql_flag(o, 'if_absent');
  d record;
  n perdure.instances;
begin
  select f.version, f.first_step, f.queue, f.steps into d
  from perdure.definitions f
  where f.fsm = sql_start.machine and f.version = coalesce(wanted, f.version)
  order by f.version desc
  limit 1;
  if not found then
    perform perdure.sql_unknown_machine(sql_start.machine, wanted);
  end if;
  if chosen !~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    perform perdure.sql_invalid('option id', 'must be a UUID in lower case');
  end if;
  n.step := coalesce(perdure.sql_text(o, 'step'), d.first_step);
  n.state := perdure.sql_json('state', sql_start.state);
  n.queue := coalesce(perdure.sql_name_option(o, 'queue'), d.queue);
  n.priority := perdure.sql_priority(o);
  n.due_at := coalesce(perdure.sql_due(o), now());
  n.deadline_at := now() + nullif(perdure.sql_delay(o, 'deadline'), interval '0');
  n.partition_key := perdure.sql_key_option(o, 'partition_key');
  n.unique_key := perdure.sql_key_option(o, 'unique_key');
  n.unique_scope := perdure.sql_scope(o);
  n.unique_name := case when n.unique_key is null then null when perdure.sql_flag(o, 'unique_across') then '' else sql_start.machine end;
  if not d.steps::jsonb ? n.step then
    perform perdure.sql_invalid('option step', format('must be a step of machine %s version %s, got %s', to_json(sql_start.machine), d.version, to_json(n.step)));
  elsif absent and (chosen is null or n.unique_key is not null) then
    perform perdure.sql_invalid('option if_absent', 'must be set with id and without unique_key');
  end if;
  duplicate := true;
  id := coalesce(chosen::uuid, perdure.sql_new_id());
  if n.unique_key is not null then
    n.id := perdure.sql_enter_unique(n.unique_name, n.unique_key, id);
    if n.id <> id then
      id := n.id;
      return;
    end if;
  end if;
  if absent then
    insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, deadline_at, created_at, partition_key)
    values (sql_start.id, sql_start.machine, d.version, n.step, n.state, n.queue, n.priority, n.due_at, n.deadline_at, now(), n.partition_key)
    on conflict (id) do nothing;
    if not found then
      return;
    end if;
  else
    insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, deadline_at, created_at, partition_key, unique_name, unique_key, unique_scope)
    values (sql_start.id, sql_start.machine, d.version, n.step, n.state, n.queue, n.priority, n.due_at, n.deadline_at, now(), n.partition_key, n.unique_name, n.unique_key, n.unique_scope);
  end if;
  duplicate := false;
  if n.deadline_at is not null then
    insert into perdure.deadlines (at, id) values (n.deadline_at, sql_start.id);
  end if;
  if n.partition_key is null or perdure.sql_enter_partition(n.partition_key, id) then
    insert into perdure.ready (queue, priority, due_at, id) values (n.queue, n.priority, n.due_at, sql_start.id);
  end if;
end $$;

-- Enters an instance into a unique key and returns the instance that owns the key.
create function perdure.sql_enter_unique(unique_name text, unique_key text, instance uuid) returns uuid
language plpgsql as $$
declare
  owner uuid;
begin
  loop
    insert into perdure.uniques (name, key, id) values (unique_name, unique_key, instance) on conflict do nothing;
    if found then
      return instance;
    end if;
    select u.id into owner from perdure.uniques u where u.name = unique_name and u.key = unique_key;
    if found then
      return owner;
    end if; -- the owner finished between the two statements
  end loop;
end $$;

-- Returns the stored form of the option unique_scope.
create function perdure.sql_scope(options jsonb) returns smallint
language plpgsql immutable as $$
declare
  scope text := coalesce(perdure.sql_text(options, 'unique_scope'), 'live');
  place integer := array_position(array['live', 'live_or_done', 'live_or_failed', 'always'], scope);
begin
  if place is null then
    perform perdure.sql_invalid('option unique_scope', 'must be live, live_or_done, live_or_failed or always');
  end if;
  return place - 1;
end $$;

-- Enters an instance into its partition and returns whether it is the head. The row of the
-- key is locked until commit, so the order of the queue is the order of commits.
create function perdure.sql_enter_partition(partition text, instance uuid) returns boolean
language plpgsql as $$
declare
  head uuid;
  tail bigint;
begin
  insert into perdure.partition_heads as h (key, head, tail) values (partition, instance, 0)
  on conflict (key) do update set tail = h.tail + 1
  returning h.head, h.tail into head, tail;
  if head = instance then
    return true;
  end if;
  insert into perdure.partition_waiting (key, seq, id) values (partition, tail, instance);
  return false;
end $$;

-- Sends a signal to an instance in the transaction of the caller. Option: key, which makes
-- the signal idempotent. Returns whether a signal with the name and the key was sent before,
-- in which case nothing was sent.
create function perdure.signal(instance uuid, name text, payload jsonb default null, options jsonb default '{}', out duplicate boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  dedup text := perdure.sql_key_option(perdure.sql_options(signal.options, array['key']), 'key');
  signal_name text := perdure.sql_name('signal', signal.name);
  stored json := perdure.sql_json('payload', signal.payload);
  ended text;
begin
  perform from perdure.instances i where i.id = signal.instance for no key update;
  if not found then
    raise exception 'instance % does not exist', coalesce(signal.instance::text, 'null') using errcode = 'no_data_found';
  end if;
  select f.status into ended from perdure.finished f where f.id = signal.instance;
  if found then
    raise exception 'instance % is %', signal.instance, ended using errcode = 'object_not_in_prerequisite_state',
      hint = 'A finished instance receives no signals.';
  end if;
  duplicate := false;
  if dedup is not null then
    insert into perdure.signal_keys (target_id, name, dedup_key) values (signal.instance, signal_name, dedup) on conflict do nothing;
    duplicate := not found;
    if duplicate then
      return;
    end if;
  end if;
  insert into perdure.signals (target_id, name, payload, created_at) values (signal.instance, signal_name, stored, now());
  perform from perdure.signals s where s.target_id = signal.instance limit 1 offset 10000;
  if found then
    raise exception 'inbox of instance % is full: it has 10000 signals', signal.instance using errcode = 'program_limit_exceeded';
  end if;
  with woken as (
    delete from perdure.waiting w
    using perdure.instances i
    where w.id = signal.instance and signal_name = any (w.names) and i.id = w.id
      and exists (
        select 1
        from perdure.signals s
        where s.target_id = w.id and s.name = signal_name and (i.seen is null or s.seq not in (select json_array_elements_text(i.seen)::bigint))
      )
    returning w.id
  ), due as (
    update perdure.instances i
    set due_at = now(), timed_out = false
    from woken
    where i.id = woken.id
    returning i.queue, i.priority, i.due_at, i.id
  )
  insert into perdure.ready (queue, priority, due_at, id)
  select queue, priority, due_at, id
  from due;
  if found then
    perform perdure.sql_mark();
  end if;
end $$;
