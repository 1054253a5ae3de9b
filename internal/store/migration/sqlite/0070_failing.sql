-- Serves the list of work that fails now: the newest attempts that did not succeed. Only failures
-- write to the table.
create index perdure_attempts_ended_idx on perdure_attempts (ended_at);
