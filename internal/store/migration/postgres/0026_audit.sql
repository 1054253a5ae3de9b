-- The audit log: what operators and tokens have changed. See internal/audit.
create table perdure.audit (
  id text collate "C" primary key,
  chain integer not null,
  seq bigint not null,
  at timestamptz not null,
  action text not null,
  kind text not null,
  target text not null,
  principal text not null,
  label text not null,
  role text not null,
  via text not null,
  address text not null,
  request text not null,
  reason text not null,
  -- JSON or empty. It is text, because the hash is that of these bytes.
  input text not null,
  before text not null,
  after text not null,
  hash text not null,
  unique (chain, seq)
);

-- Serve lists of what was done to one thing, by one principal, and of one action.
create index audit_target_idx on perdure.audit (kind, target, id);
create index audit_principal_idx on perdure.audit (principal, id);
create index audit_action_idx on perdure.audit (action, id);

-- The ends of the chains. base is the last entry that retention has removed.
create table perdure.audit_chains (
  chain integer primary key,
  seq bigint not null default 0,
  hash text not null default '',
  base_seq bigint not null default 0,
  base_hash text not null default ''
) with (fillfactor = 50);

insert into perdure.audit_chains (chain)
select n from generate_series(1, 64) as n;

-- Entries are not changed, and removed only by retention, which first moves the base.
create function perdure.refuse_audit_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and tg_table_name = 'audit' then
    if old.seq <= (select base_seq from perdure.audit_chains c where c.chain = old.chain) then
      return old;
    end if;
  end if;
  raise exception 'the audit log is append-only' using errcode = 'object_not_in_prerequisite_state';
end $$;

create trigger audit_no_change before update or delete on perdure.audit
for each row execute function perdure.refuse_audit_change();
create trigger audit_no_truncate before truncate on perdure.audit
for each statement execute function perdure.refuse_audit_change();
create trigger audit_chains_no_delete before delete on perdure.audit_chains
for each row execute function perdure.refuse_audit_change();
create trigger audit_chains_no_truncate before truncate on perdure.audit_chains
for each statement execute function perdure.refuse_audit_change();
