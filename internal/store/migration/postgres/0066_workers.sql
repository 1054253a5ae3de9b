-- Pull workers, see ADR 24.

-- The committed outcome of work that a program outside the server did. It makes the outcome
-- idempotent by the token of the claim. Rows are removed after an hour.
create table perdure.receipts (
  token text primary key,
  -- A hash of the outcome.
  digest text not null,
  created_at timestamptz not null
);

-- Serves the removal of old rows.
create index receipts_created_idx on perdure.receipts (created_at);

-- What a token with the role worker may serve, as JSON. Null: everything.
alter table perdure.tokens add column scope text;
