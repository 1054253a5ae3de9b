-- Reports whether any timer was postponed: passes over due timers then read them again.
create index timers_postponed_idx on perdure.timers (occurs_at) where occurs_at is not null;
