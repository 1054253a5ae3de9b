-- Work that may have killed its process is found by bisecting. batch_limit is the
-- number of suspects that may run together with this one, itself included; from 1
-- on, every crash alone lowers it by one. Null: not a suspect.

alter table perdure.hooks add column batch_limit integer;

alter table perdure.alarms add column batch_limit integer;

-- Serves the claim of suspects among the delays of actors.
create index alarms_suspect_idx on perdure.alarms (kind, due_at) where batch_limit is not null;

-- The delays of actors that a process is about to fire. The transaction that fires
-- them deletes the row: one that is left when it expires is of a process that
-- crashed.
create table perdure.firing (
  token text primary key,
  worker text not null,
  -- All delays in the row are suspects.
  suspect boolean not null,
  expires_at timestamptz not null,
  -- [actor type, actor id, alarm id] of each delay.
  timers json not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
