-- The snapshot of an actor is a part of its row: a step writes one row, and the statement
-- that locks an actor reads its snapshot. The two belong together: whether the snapshot is
-- that of the last step is checked when it is read.

-- The state after the last step.
alter table perdure.actors add column snapshot json;

-- The step after which the snapshot was taken.
alter table perdure.actors add column snapshot_sequence bigint;

-- The checksum of the snapshot's text.
alter table perdure.actors add column checksum text;

-- A new version of a row fits into its page, so the indexes need not change.
alter table perdure.actors set (fillfactor = 50);

update perdure.actors a
set snapshot = s.snapshot, snapshot_sequence = s.sequence, checksum = s.checksum
from perdure.snapshots s
where s.actor_type = a.type and s.actor_id = a.id;

drop table perdure.snapshots;

-- A pass over due timers records their actors, not each timer. A pass over suspects still
-- records each timer.

-- When the pass began. It fires the timers that were due then.
alter table perdure.firing add column claimed_at timestamptz;

update perdure.firing set claimed_at = expires_at;

alter table perdure.firing alter column claimed_at set not null;
