-- Tasks: the queue. A worker only calls functions that its role may execute; the
-- functions are in the migration.

-- name: TaskClock
-- Sets the time of this transaction, for tests. It has no effect for a worker's
-- role.
select set_config('perdure.now', ?::timestamptz::text, true)

-- name: TaskTrace
-- Sets the trace of all tasks that this transaction enqueues from here on.
select set_config('perdure.trace', ?, true)

-- name: TaskEnqueue
-- The task is due at a time, or after a delay from now.
select queues.enqueue(?, ?::jsonb, coalesce(?::timestamptz, queues.now() + ?::bigint * interval '1 microsecond'))

-- name: TaskClaim
select task_id, task_type, payload, attempts, crashes, batch_limit, token::text, outcome, enqueued_at, scheduled_at, trace
from queues.dequeue_next_available_tasks(?, ?::text[], ?::integer, ?::bigint * interval '1 microsecond', ?::integer, true)

-- name: TaskReap
select task_id, task_type, status, crashes
from queues.reap_expired_tasks(?::integer, ?, ?::boolean)

-- name: TaskUnrouted
select queues.report_unrouted_tasks(?::text[])

-- name: TaskEndOverdue
select queues.end_overdue_sessions()

-- name: TaskNext
select queues.next_task_in(?::text[], ?::integer)

-- name: TaskExtend
select queues.heartbeat(?::bigint[], ?::uuid[], ?::bigint * interval '1 microsecond')

-- name: TaskRelease
select queues.release(?::bigint[], ?::uuid[])

-- name: TaskPostpone
select queues.postpone(?, ?::uuid, ?, ?::bigint * interval '1 microsecond')

-- name: TaskHold
-- Locks tasks and runs their functions, if they have one.
select task_id, result, took
from queues.run_tasks(?::bigint[], ?::uuid[], ?::text[], ?::text[]::jsonb[], ?::text[])

-- name: TaskAppendError
select queues.append_error(c.task_id, c.token, c.message)
from unnest(?::bigint[], ?::uuid[], ?::text[]) as c (task_id, token, message)

-- name: TaskComplete
select queues.complete(c.task_id, c.token)
from unnest(?::bigint[], ?::uuid[]) as c (task_id, token)

-- name: TaskFail
select queues.fail(c.task_id, c.token, c.message, c.delay * interval '1 microsecond', c.outcome)
from unnest(?::bigint[], ?::uuid[], ?::text[], ?::bigint[], ?::text[]::jsonb[]) as c (task_id, token, message, delay, outcome)

-- name: TaskSweep
select queues.sweep(?::bigint * interval '1 microsecond')

-- name: TaskSweepDead
select queues.sweep_dead(?::bigint * interval '1 microsecond')
