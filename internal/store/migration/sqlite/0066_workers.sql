-- Pull workers, see ADR 24.

-- The committed outcome of work that a program outside the server did. It makes the outcome
-- idempotent by the token of the claim. Rows are removed after an hour.
create table perdure_receipts (
  token text not null primary key,
  -- A hash of the outcome.
  digest text not null,
  created_at integer not null
) without rowid;

-- Serves the removal of old rows.
create index perdure_receipts_created_idx on perdure_receipts (created_at);

-- What a token with the role worker may serve, as JSON. Null: everything.
alter table perdure_tokens add column scope text;
