-- Fsm signal: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: FinishedStatus
select status
from perdure.finished
where id = {uuid ?}

-- name: SignalInbox
select seq, {text target_id}, name, {text payload}, created_at, received
from perdure.signals
where target_id {any uuid ?}
order by target_id, seq
