-- Work that may have killed its process is found by bisecting. batch_limit is the
-- number of suspects that may run together with this one, itself included; from 1
-- on, every crash alone lowers it by one. Null: not a suspect.

alter table perdure_hooks add column batch_limit integer;

alter table perdure_alarms add column batch_limit integer;

-- Serves the claim of suspects among the delays of actors.
create index perdure_alarms_suspect_idx on perdure_alarms (kind, due_at) where batch_limit is not null;

-- The delays of actors that a process is about to fire. The transaction that fires
-- them deletes the row: one that is left when it expires is of a process that
-- crashed.
create table perdure_firing (
  token text primary key,
  worker text not null,
  -- All delays in the row are suspects.
  suspect integer not null,
  expires_at integer not null,
  -- [actor type, actor id, alarm id] of each delay.
  timers text not null
) strict;
