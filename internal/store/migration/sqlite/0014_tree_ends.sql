-- Trees of instances end in pieces, outside the transaction that ends the root.

-- Children that must be cancelled or reopened. A row is removed when no child is
-- left. Any process continues the work.
create table perdure_tree_ends (
  seq integer primary key,
  -- The children of this instance, from the first to the last of these fan-outs.
  parent_id text not null,
  first_fanout integer not null,
  last_fanout integer not null,
  -- end: the parent has ended. cancel: the parent continues without these
  -- children. reopen: the end of the parent was taken back.
  kind text not null check (kind in ('end', 'cancel', 'reopen')),
  -- The instance whose cancellation, deadline or retry began this.
  root_id text not null,
  reason text not null,
  -- The last child that was handled in this pass. Null: the pass has not begun.
  after_fanout integer,
  after_ordinal integer,
  -- When a process that is not working on the row takes it over.
  due_at integer not null,
  created_at integer not null,
  unique (parent_id, kind, last_fanout)
) strict;

-- Serves takeovers.
create index perdure_tree_ends_due_idx on perdure_tree_ends (due_at);

-- Serves callers that wait for the end of one tree.
create index perdure_tree_ends_root_idx on perdure_tree_ends (root_id, seq);

-- The parent whose end cancelled the instance. A retry of that parent reopens it.
alter table perdure_finished add column ended_by text;

-- The children that are left when the wait ends are cancelled.
alter table perdure_barriers add column cancel_rest integer not null default 0;
