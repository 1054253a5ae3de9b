-- Pull workers, see ADR 24.

-- The committed outcome of work that a program outside the server did. It makes the outcome
-- idempotent by the token of the claim. Rows are removed after an hour.
create table if not exists perdure_receipts (
  token varchar(140) not null primary key,
  -- A hash of the outcome.
  digest varchar(64) not null,
  created_at datetime(6) not null,
  -- Serves the removal of old rows.
  key perdure_receipts_created_idx (created_at)
) engine=InnoDB default character set utf8mb4 collate {collation};

-- What a token with the role worker may serve, as JSON. Null: everything.
-- MySQL commits with every DDL statement: each one can run again.
set @perdure_step = if(not exists (
  select 1
  from information_schema.columns
  where table_schema = database() and table_name = 'perdure_tokens' and column_name = 'scope'
), 'alter table perdure_tokens add column scope longtext', 'do 0');
prepare perdure_step from @perdure_step;
execute perdure_step;
deallocate prepare perdure_step;
