-- Who may use the server: API tokens, tokens of actors, sessions of browsers.

-- Of a token only its hash is stored. A session belongs to the API token that it
-- was begun with, and ends with it.
create table perdure.tokens (
  id uuid primary key,
  kind text not null check (kind in ('api', 'actor', 'session')),
  hash bytea not null unique,
  name text not null,
  role text not null,
  actor_type text,
  actor_id text,
  caller_kind text,
  caller_id text,
  parent_id uuid references perdure.tokens (id) on delete cascade,
  created_at timestamptz not null,
  used_at timestamptz,
  idle bigint,
  expires_at timestamptz,
  revoked_at timestamptz,
  check ((kind = 'actor') = (actor_type is not null and actor_id is not null and caller_kind is not null and caller_id is not null)),
  check ((kind = 'session') = (parent_id is not null and idle is not null and expires_at is not null))
);

-- Serves the end of sessions with their token.
create index tokens_parent_idx on perdure.tokens (parent_id) where parent_id is not null;

-- Serves the removal of what has expired.
create index tokens_expires_idx on perdure.tokens (expires_at) where expires_at is not null;

-- Serves the list of API tokens, and whether there is one.
create index tokens_api_idx on perdure.tokens (id) where kind = 'api';
