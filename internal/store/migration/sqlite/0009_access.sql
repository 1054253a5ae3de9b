-- Who may use the server: API tokens, tokens of actors, sessions of browsers.

-- Of a token only its hash is stored. A session belongs to the API token that it
-- was begun with, and ends with it.
create table perdure_tokens (
  id text primary key,
  kind text not null check (kind in ('api', 'actor', 'session')),
  hash blob not null unique,
  name text not null,
  role text not null,
  actor_type text,
  actor_id text,
  caller_kind text,
  caller_id text,
  parent_id text references perdure_tokens (id) on delete cascade,
  created_at integer not null,
  used_at integer,
  idle integer,
  expires_at integer,
  revoked_at integer,
  check ((kind = 'actor') = (actor_type is not null and actor_id is not null and caller_kind is not null and caller_id is not null)),
  check ((kind = 'session') = (parent_id is not null and idle is not null and expires_at is not null))
) strict;

-- Serves the end of sessions with their token.
create index perdure_tokens_parent_idx on perdure_tokens (parent_id) where parent_id is not null;

-- Serves the removal of what has expired.
create index perdure_tokens_expires_idx on perdure_tokens (expires_at) where expires_at is not null;

-- Serves the list of API tokens, and whether there is one.
create index perdure_tokens_api_idx on perdure_tokens (id) where kind = 'api';
