-- Sends an event to an actor in the transaction of the caller. A process handles it after
-- the commit; the events of one actor are handled in the order in which they were sent.
-- Options: key, caller ({"type": "client" or "service", "id": "…"}). Default of caller: the
-- service with the name of the database user. Returns the id of the hook that delivers the
-- event, and whether the actor has already handled an event with the key, in which case
-- nothing was sent.
create function perdure.send_event(actor_type text, actor_id text, event jsonb, options jsonb default '{}', out id uuid, out duplicate boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  o jsonb := perdure.sql_options(send_event.options, array['key', 'caller']);
  dedup text := perdure.sql_key_option(o, 'key');
  caller jsonb := perdure.sql_options(o -> 'caller', array['type', 'id']);
  kind text := perdure.sql_text(send_event.event, 'type');
begin
  perform perdure.sql_name('actor type', send_event.actor_type), perdure.sql_key('actor id', send_event.actor_id);
  if jsonb_typeof(send_event.event) is distinct from 'object' or kind is null then
    perform perdure.sql_invalid('event', 'must be an object with a type');
  elsif octet_length(kind) > 512 then
    perform perdure.sql_invalid('event.type', 'must be at most 512 bytes');
  elsif kind = '*' or starts_with(kind, 'xstate.') and kind <> 'xstate.route' then
    perform perdure.sql_invalid('event.type', 'must not be *, and must not start with xstate., which is reserved for the machine');
  elsif kind in ('INITIALIZE', 'RESUME', 'MIGRATE', 'CONNECT', 'DISCONNECT') then
    perform perdure.sql_invalid('event.type', 'must not be ' || kind || ', which is reserved for the system');
  end if;
  caller := case when caller = '{}' then jsonb_build_object('type', 'service', 'id', session_user) else caller end;
  if coalesce(perdure.sql_text(caller, 'type'), '') not in ('client', 'service') then
    perform perdure.sql_invalid('option caller', 'must have the type client or service');
  end if;
  perform perdure.sql_key('id of option caller', perdure.sql_text(caller, 'id')), perdure.sql_json('event', send_event.event);
  if not exists (select from perdure.actors a where a.type = send_event.actor_type and a.id = send_event.actor_id) then
    raise exception 'actor %/% does not exist', send_event.actor_type, send_event.actor_id using errcode = 'no_data_found';
  end if;
  duplicate := dedup is not null and exists (
    select from perdure.actor_keys k
    where k.actor_type = send_event.actor_type and k.actor_id = send_event.actor_id and k.key = dedup);
  if duplicate then
    return;
  end if;
  id := perdure.sql_new_id();
  insert into perdure.actor_inbox (actor_type, actor_id, item) values (send_event.actor_type, send_event.actor_id, send_event.id);
  perform perdure.sql_hook(id, null, 'actor', 'event/' || send_event.actor_type, jsonb_build_object('actor', jsonb_build_object('type', send_event.actor_type,
    'id', send_event.actor_id), 'caller', caller, 'event', send_event.event, 'key', coalesce(dedup, send_event.id::text))::text, '{}');
end $$;

-- Emits an event: it is in the outbox when the transaction of the caller is committed. The
-- events of a transaction are one entry. Key may be empty.
create function perdure.emit(topic text, key text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if octet_length(key) > 512 then
    perform perdure.sql_invalid('key', 'must be at most 512 bytes');
  end if;
  insert into perdure.sql_events (xid, topic, key, payload)
  values (pg_current_xact_id(), perdure.sql_name('topic', emit.topic), coalesce(emit.key, ''), perdure.sql_event_json(emit.payload));
  perform perdure.sql_mark();
end $$;

-- Returns the payload of an event, which is never encrypted.
create function perdure.sql_event_json(payload jsonb) returns text
language plpgsql as $$
begin
  perform perdure.sql_json('payload', payload);
  return coalesce(payload, 'null')::text;
end $$;

-- Writes the events of a transaction into the outbox when it commits. It runs after the
-- statements of the caller, so the counter is the last lock of most transactions, and it is
-- not held during a round trip to the client. Numbers follow the order of commits, without
-- gaps, because the lock is held until the commit.
create function perdure.sql_append() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  staged perdure.sql_events[];
  stamp bytea;
  entry text;
begin
  with mine as (
    delete from perdure.sql_events where xid = pg_current_xact_id() returning *
  )
  select array_agg(row(m.xid, m.seq, m.topic, m.key, m.payload)::perdure.sql_events order by m.seq) into staged from mine m;
  if staged is null then
    return null; -- an earlier row of the transaction has written all events
  end if;
  if array_length(staged, 1) > 65536 then
    raise exception 'a transaction must emit at most 65536 events, got %', array_length(staged, 1) using errcode = 'program_limit_exceeded';
  end if;
  update perdure.outbox_clock set counter = counter + 1 where id = 1
  returning substring(int4send(incarnation) from 3) || int8send(counter) into stamp;
  if stamp is null then
    raise exception 'outbox counter is missing: start a new incarnation' using errcode = 'object_not_in_prerequisite_state';
  end if;
  select string_agg(concat('{"topic":', to_json(e.topic), case when e.key <> '' then ',"key":' || to_json(e.key) end,
    ',"versionstamp":"', encode(stamp || substring(int4send((e.place - 1)::integer) from 3), 'hex'), '","payload":', e.payload, '}'), ',' order by e.place) into entry
  from unnest(staged) with ordinality as e (xid, seq, topic, key, payload, place);
  insert into perdure.outbox (versionstamp, unit_id, payload, created_at)
  values (stamp || '\x0000', gen_random_uuid()::text, ('{"json":{"version":1,"mutations":[],"events":[' || entry || ']}}')::json, clock_timestamp());
  return null;
end $$;

create constraint trigger append after insert on perdure.sql_events
deferrable initially deferred for each row execute function perdure.sql_append();
