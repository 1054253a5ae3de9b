-- Serve the retention of dead letters, oldest end first.
create index perdure_finished_dead_at_idx on perdure_finished (finished_at) where status in ('failed', 'quarantined');
create index perdure_hooks_dead_at_idx on perdure_hooks (finished_at) where status in ('failed', 'quarantined');
create index queues_task_dead_at_idx on queues_task (finished_at) where status in ('failed', 'quarantined');

-- Serves the list of instances that a step has stopped.
create index perdure_finished_stopped_idx on perdure_finished (id) where status = 'stopped';
