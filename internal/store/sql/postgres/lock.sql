-- Waits for locks, on PostgreSQL.

-- name: LockTimeout
-- The longest wait for a lock in this transaction.
select set_config('lock_timeout', ?, true)
