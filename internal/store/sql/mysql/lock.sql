-- Waits for locks, on MySQL.

-- name: LockTimeout
-- The longest wait for a lock, in seconds. The driver sets it back when the transaction ends.
set innodb_lock_wait_timeout = ?1
