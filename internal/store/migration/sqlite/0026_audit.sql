-- The audit log: what operators and tokens have changed. See internal/audit.
create table perdure_audit (
  id text primary key,
  chain integer not null,
  seq integer not null,
  at integer not null,
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
  input text not null,
  before text not null,
  after text not null,
  hash text not null,
  unique (chain, seq)
) strict, without rowid;

-- Serve lists of what was done to one thing, by one principal, and of one action.
create index perdure_audit_target_idx on perdure_audit (kind, target, id);
create index perdure_audit_principal_idx on perdure_audit (principal, id);
create index perdure_audit_action_idx on perdure_audit (action, id);

-- The ends of the chains. base is the last entry that retention has removed.
create table perdure_audit_chains (
  chain integer primary key,
  seq integer not null default 0,
  hash text not null default '',
  base_seq integer not null default 0,
  base_hash text not null default ''
) strict;

insert into perdure_audit_chains (chain)
with recursive n (chain) as (select 1 union all select chain + 1 from n where chain < 64)
select chain from n;

-- Entries are not changed, and removed only by retention, which first moves the base.
create trigger perdure_audit_no_update before update on perdure_audit begin select raise(abort, 'the audit log is append-only'); end;

create trigger perdure_audit_no_delete before delete on perdure_audit when old.seq > (select base_seq from perdure_audit_chains where chain = old.chain) begin select raise(abort, 'the audit log is append-only'); end;

create trigger perdure_audit_chains_no_delete before delete on perdure_audit_chains begin select raise(abort, 'the audit log is append-only'); end;
