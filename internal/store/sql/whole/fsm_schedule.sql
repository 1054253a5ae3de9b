-- Fsm schedule: statements of most databases. Marks such as {now ?} are explained in template.go.

-- name: ScheduleInsert
insert into perdure.schedules (name, fsm, version, spec, next_at, paused, updated_at)
values (?, ?, ?, ?, ?, ?, {now ?})
on conflict do nothing
