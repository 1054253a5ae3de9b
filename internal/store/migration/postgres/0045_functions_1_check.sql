-- Checks of arguments. They are those of Go as far as SQL can make them; see internal/edge.
-- Only the functions for applications call them.

create function perdure.sql_invalid(field text, reason text, hint text default '') returns void
language plpgsql as $$
begin
  if hint = '' then
    raise exception '% %', field, reason using errcode = 'invalid_parameter_value';
  end if;
  raise exception '% %', field, reason using errcode = 'invalid_parameter_value', hint = hint;
end $$;

-- Returns a name: 1 to 128 bytes of printable characters with no space at either end.
-- Characters that no version of Unicode has assigned are not recognized.
create function perdure.sql_name(field text, name text) returns text
language plpgsql immutable as $$
begin
  if name ~ '^[!-~]([ -~]*[!-~])?$' and length(name) <= 128 then
    return name;
  end if;
  case
    when name is null or name = '' then
      perform perdure.sql_invalid(field, 'must not be empty');
    when octet_length(name) > 128 then
      perform perdure.sql_invalid(field, 'must be at most 128 bytes');
    when name ~ '[\x01-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U0010ffff]' then
      perform perdure.sql_invalid(field, 'must contain only printable characters');
    when name like ' %' or name like '% ' then
      perform perdure.sql_invalid(field, 'must not start or end with a space');
    else
      return name;
  end case;
  return null;
end $$;

-- Returns a key: 1 to most bytes of text.
create function perdure.sql_key(field text, key text, most integer default 512) returns text
language plpgsql immutable as $$
begin
  if key is null or key = '' then
    perform perdure.sql_invalid(field, 'must not be empty');
  elsif octet_length(key) > most then
    perform perdure.sql_invalid(field, format('must be at most %s bytes', most));
  end if;
  return key;
end $$;

-- Returns a document in its stored form. Documents in jsonb have no duplicate keys, no NUL,
-- no lone surrogates and no negative zeros. SQL cannot encrypt: the value is plain, and a
-- value that looks encrypted is marked as plain.
create function perdure.sql_json(field text, document jsonb, most integer default 1048576) returns text
language plpgsql immutable as $$
declare
  stored text := coalesce(document, 'null')::text;
begin
  if octet_length(stored) > most then
    perform perdure.sql_invalid(field, format('must be at most %s bytes', most));
  end if;
  if length(stored) - length(translate(stored, '[{', '')) > 31
    and jsonb_path_exists(document, 'strict $.**{31 to last} ? (@.type() == "object" || @.type() == "array")') then
    perform perdure.sql_invalid(field, 'must have at most 31 levels');
  end if;
  if octet_length(stored) > 255 and stored ~ '[0-9]{255}' then
    begin
      perform (n #>> '{}')::double precision
      from jsonb_path_query(document, 'strict $.** ? (@.type() == "number")') as n;
    exception when numeric_value_out_of_range then
      perform perdure.sql_invalid(field, 'must have only numbers within the range of a 64-bit float');
    end;
    if exists (select from jsonb_path_query(document, 'strict $.** ? (@.type() == "number")') as n where octet_length(n::text) > 512) then
      perform perdure.sql_invalid(field, 'must have only numbers of at most 512 bytes');
    end if;
  end if;
  if stored like '{%"$sealed"%' and document ? '$sealed' then
    return '{"$sealed":"none","data":"' || translate(encode(convert_to(stored, 'UTF8'), 'base64'), E'\n', '') || '"}';
  end if;
  return stored;
end $$;

-- Returns options, which must be an object without unknown names.
create function perdure.sql_options(options jsonb, known text[]) returns jsonb
language plpgsql immutable as $$
declare
  unknown text;
begin
  if options is null or options = '{}' then
    return '{}';
  end if;
  if jsonb_typeof(options) <> 'object' then
    perform perdure.sql_invalid('options', 'must be an object, got ' || jsonb_typeof(options));
  end if;
  select name into unknown from jsonb_object_keys(options) as name where name <> all (known) limit 1;
  if found then
    perform perdure.sql_invalid(format('option %s', to_json(unknown)), 'is not known', 'Known options: ' || array_to_string(known, ', ') || '.');
  end if;
  return jsonb_strip_nulls(options);
end $$;

-- Returns an option that is a text, or null if it is not set. An empty text is not set.
create function perdure.sql_text(options jsonb, name text) returns text
language plpgsql immutable as $$
begin
  if not options ? name then
    return null;
  end if;
  if jsonb_typeof(options -> name) <> 'string' then
    perform perdure.sql_invalid('option ' || name, 'must be a string, got ' || jsonb_typeof(options -> name));
  end if;
  return nullif(options ->> name, '');
end $$;

-- Returns an option that is a name, or null if it is not set.
create function perdure.sql_name_option(options jsonb, name text) returns text
language plpgsql immutable as $$
begin
  return case when perdure.sql_text(options, name) is not null then perdure.sql_name('option ' || name, options ->> name) end;
end $$;

-- Returns an option that is a key, or null if it is not set.
create function perdure.sql_key_option(options jsonb, name text, most integer default 512) returns text
language plpgsql immutable as $$
begin
  return case when perdure.sql_text(options, name) is not null then perdure.sql_key('option ' || name, options ->> name, most) end;
end $$;

-- Returns an option that is true or false. Default: false.
create function perdure.sql_flag(options jsonb, name text) returns boolean
language plpgsql immutable as $$
begin
  if not options ? name then
    return false;
  end if;
  if jsonb_typeof(options -> name) <> 'boolean' then
    perform perdure.sql_invalid('option ' || name, 'must be true or false, got ' || jsonb_typeof(options -> name));
  end if;
  return (options -> name)::boolean;
end $$;

-- Returns an option that is a whole number, or null if it is not set.
create function perdure.sql_number(options jsonb, name text, lowest bigint, highest bigint) returns bigint
language plpgsql immutable as $$
declare
  n numeric;
begin
  if not options ? name then
    return null;
  end if;
  if jsonb_typeof(options -> name) <> 'number' then
    perform perdure.sql_invalid('option ' || name, 'must be a number, got ' || jsonb_typeof(options -> name));
  end if;
  n := (options -> name)::numeric;
  if n < lowest or n > highest or n <> trunc(n) then
    perform perdure.sql_invalid('option ' || name, format('must be a whole number between %s and %s', lowest, highest));
  end if;
  return n;
end $$;

-- Returns an option that is a duration, or null if it is not set: a number of seconds, or an
-- interval as text ("90s", "1h30m", "2 days"). It is between 0 and 100 years.
create function perdure.sql_delay(options jsonb, name text) returns interval
language plpgsql stable as $$
declare
  seconds numeric;
begin
  if not options ? name then
    return null;
  end if;
  case jsonb_typeof(options -> name)
    when 'number' then
      seconds := (options -> name)::numeric;
    when 'string' then
      seconds := extract(epoch from (options ->> name)::interval)::numeric;
    else
      perform perdure.sql_invalid('option ' || name, 'must be a number of seconds or an interval such as "90s"');
  end case;
  if seconds < 0 then
    perform perdure.sql_invalid('option ' || name, 'must not be negative');
  elsif not seconds <= 3155760000 then
    perform perdure.sql_invalid('option ' || name, 'must be at most 100 years');
  end if;
  return trunc(seconds * 1000000) * interval '1 microsecond';
end $$;

-- Returns the due time of work: the option at, or the option delay after now. Null: neither is
-- set.
create function perdure.sql_due(options jsonb) returns timestamptz
language plpgsql stable as $$
declare
  due timestamptz;
begin
  if options ? 'at' and options ? 'delay' then
    perform perdure.sql_invalid('options', 'must have at or delay, not both');
  end if;
  if options ? 'delay' then
    return now() + perdure.sql_delay(options, 'delay');
  end if;
  due := perdure.sql_text(options, 'at')::timestamptz;
  if due < '0001-01-01 00:00:00+00' or due >= '9999-01-01 00:00:00+00' then
    perform perdure.sql_invalid('option at', 'must be between the years 1 and 9998');
  end if;
  return due;
end $$;

create function perdure.sql_priority(options jsonb) returns smallint
language plpgsql immutable as $$
begin
  case perdure.sql_text(options, 'priority')
    when 'high' then return -1;
    when 'low' then return 1;
    when 'normal' then return 0;
    else
      if perdure.sql_text(options, 'priority') is not null then
        perform perdure.sql_invalid('option priority', 'must be high, normal or low');
      end if;
      return 0;
  end case;
end $$;

-- Returns the retry policy of the option retry in its stored form, in which durations are
-- nanoseconds. The default is retry.Default of Go.
create function perdure.sql_retry(options jsonb) returns jsonb
language plpgsql stable as $$
declare
  p jsonb;
  kind text;
  attempts bigint;
  factor numeric;
  jitter numeric;
begin
  if not options ? 'retry' then
    return '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}';
  end if;
  if jsonb_typeof(options -> 'retry') <> 'object' then
    perform perdure.sql_invalid('option retry', 'must be an object');
  end if;
  p := perdure.sql_options(options -> 'retry', array['kind', 'max_attempts', 'initial', 'factor', 'increment', 'max', 'jitter']);
  kind := perdure.sql_text(p, 'kind');
  if kind is null or kind not in ('exponential', 'linear', 'fixed', 'none') then
    perform perdure.sql_invalid('option retry', 'must have the kind exponential, linear, fixed or none');
  end if;
  attempts := coalesce(perdure.sql_number(p, 'max_attempts', 1, 10000), 0);
  if attempts = 0 then
    perform perdure.sql_invalid('option retry', 'must have between 1 and 10000 attempts');
  elsif kind = 'none' and attempts <> 1 then
    perform perdure.sql_invalid('option retry', 'of kind none must have 1 attempt');
  end if;
  if jsonb_typeof(coalesce(p -> 'factor', '0')) <> 'number' or jsonb_typeof(coalesce(p -> 'jitter', '0')) <> 'number' then
    perform perdure.sql_invalid('option retry', 'must have numbers as factor and jitter');
  end if;
  factor := (p -> 'factor')::numeric;
  jitter := (p -> 'jitter')::numeric;
  if kind = 'exponential' and (factor is null or factor < 1 or factor > 1000) then
    perform perdure.sql_invalid('option retry', 'must have a factor between 1 and 1000');
  elsif jitter < 0 or jitter > 1 then
    perform perdure.sql_invalid('option retry', 'must have a jitter between 0 and 1');
  end if;
  return jsonb_strip_nulls(jsonb_build_object('kind', kind, 'max_attempts', attempts, 'factor', factor, 'jitter', jitter,
    'initial', perdure.sql_nanoseconds(p, 'initial'), 'increment', perdure.sql_nanoseconds(p, 'increment'), 'max', perdure.sql_nanoseconds(p, 'max')));
end $$;

-- Returns an option that is a duration in nanoseconds, or null if it is not set.
create function perdure.sql_nanoseconds(options jsonb, name text) returns bigint
language sql stable
return (extract(epoch from perdure.sql_delay(options, name)) * 1000000000)::bigint;

-- Returns a new id. Ids that are made later sort later (UUID version 7).
create function perdure.sql_new_id() returns uuid
language sql volatile
return encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
  placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid;
