-- The snapshot of an actor is a part of its row: a step writes one row, and the statement
-- that locks an actor reads its snapshot. The two belong together: whether the snapshot is
-- that of the last step is checked when it is read.

-- The state after the last step.
alter table perdure_actors add column snapshot text;

-- The step after which the snapshot was taken.
alter table perdure_actors add column snapshot_sequence integer;

-- The checksum of the snapshot's text.
alter table perdure_actors add column checksum text;

update perdure_actors
set snapshot = s.snapshot, snapshot_sequence = s.sequence, checksum = s.checksum
from perdure_snapshots s
where s.actor_type = perdure_actors.type and s.actor_id = perdure_actors.id;

drop table perdure_snapshots;

-- A pass over due timers records their actors, not each timer. A pass over suspects still
-- records each timer.

-- When the pass began. It fires the timers that were due then.
alter table perdure_firing add column claimed_at integer not null default 0;

update perdure_firing set claimed_at = expires_at;
