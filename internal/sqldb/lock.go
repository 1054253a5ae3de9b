package sqldb

import (
	"context"
	"errors"
	"time"
)

// ClientSilence is the time after which a server ends a transaction of Perdure's own
// statements whose process has stopped. Such a transaction holds locks that other writers
// need.
const ClientSilence = 4 * time.Second

// LimitLocks returns a statement that bounds each wait for a lock of the statements after
// it, until the transaction ends or the next LimitLocks. A longer wait is an error for
// which IsLocked is true. It costs no round trip of its own, except on MySQL 8, which also
// counts whole seconds. It has no effect on SQLite, which has no row locks, and in a
// transaction that a caller has joined.
func LimitLocks(wait time.Duration) Stmt { return Stmt{limit: max(wait, time.Millisecond)} }

// LockLimit returns the bound of a statement of LimitLocks, for drivers. ok is false for
// all other statements.
func (s Stmt) LockLimit() (wait time.Duration, ok bool) { return s.limit, s.limit > 0 }

// IsLocked reports whether a statement waited for a lock longer than LimitLocks or the
// session allows. Nothing was written.
func IsLocked(err error) bool {
	var timeout *LockTimeout
	return errors.As(err, &timeout)
}

// Watched is a DB that can find the session that other writers wait for.
type Watched interface {
	// CounterHolder describes the session that holds the outbox counter, or the write lock
	// on a database with one writer, while another session waits for it. If the server does
	// not end sessions of stopped processes by itself, CounterHolder ends a session that has
	// been silent for ClientSilence. It returns the empty string if no session is found.
	CounterHolder(ctx context.Context) (string, error)
}
