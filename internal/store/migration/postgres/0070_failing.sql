-- Serves the list of work that fails now: the newest attempts that did not succeed. Only failures
-- write to the table.
create index attempts_ended_idx on perdure.attempts (ended_at);
