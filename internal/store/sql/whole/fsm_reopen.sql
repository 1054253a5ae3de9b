-- Fsm reopen: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: FinishedOwn
-- Keeps instances finished: a retry of their parent does not reopen them.
update perdure.finished
set ended_by = null
where id {any uuid ?}

-- name: DeadlineEnter
insert into perdure.deadlines (at, id)
select deadline_at, id
from perdure.instances
where id {any uuid ?} and deadline_at is not null

-- name: FinishedRevive
delete from perdure.finished
where id {any uuid ?}
