-- Work that may have killed its process is found by bisecting. batch_limit is the
-- number of suspects that may run together with this one, itself included; from 1
-- on, every crash alone lowers it by one. Null: not a suspect.
alter table perdure_hooks add column batch_limit int;
