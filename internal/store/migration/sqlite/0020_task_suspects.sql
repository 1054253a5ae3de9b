-- Tasks that may have killed their worker are found by bisecting, like other work.

-- The number of suspects that may run together with this one in a worker, itself
-- included. From 1 on, every crash alone lowers it by one. Null: not a suspect.
alter table queues_task add column batch_limit integer;
