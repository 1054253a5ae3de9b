package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
)

// Native is a Tx whose connection the application can use too.
type Native interface {
	Tx
	// Driver returns the connection of the transaction for database/sql, after the
	// statements that start the transaction have run. The caller must not close it.
	Driver(ctx context.Context) (driver.Conn, error)
	// Enter prepares the session for a statement of the application, after statements of the
	// engine.
	Enter(ctx context.Context) error
	// State returns the state of the transaction as far as the client knows it.
	State() State
	// Use reserves the connection for the application until done is called; see Alive.
	Use() (done func())
}

// State is the state of a transaction.
type State int

// The states of a transaction.
const (
	// Open means that the transaction is open, or that its state is not known.
	Open State = iota
	// Aborted means that only a rollback, or a rollback to a savepoint, is possible.
	Aborted
	// Ended means that there is no transaction, or no connection.
	Ended
)

// Guard connects the statements of the application to the unit of work whose transaction
// they use.
type Guard interface {
	// Context is the context of the unit. Statements end with it.
	Context() context.Context
	// Before is called before a statement. The statement must not run if it returns an
	// error.
	Before(query string) error
	// After is called with the result of a statement that Before has allowed. A query may be
	// reported twice: when it is sent, and when its rows have been read.
	After(query string, err error)
	// Refuse fails the unit because the application tried to end the transaction.
	Refuse() error
	// Use reserves the connection until done is called; see Alive.
	Use() (done func())
}

// Using returns the context of a statement of the application, which ends with ctx or with the
// unit, and reserves the connection until stop is called.
func Using(ctx context.Context, guard Guard) (merged context.Context, stop context.CancelFunc) {
	done := guard.Use()
	merged, cancel := Merge(ctx, guard.Context())
	return merged, func() {
		cancel()
		done()
	}
}

// Merge returns a context that ends with ctx or with unit, whichever is first.
func Merge(ctx, unit context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == unit.Done() {
		return ctx, func() {}
	}
	var merged context.Context
	var cancel context.CancelFunc
	if deadline, ok := unit.Deadline(); ok {
		merged, cancel = context.WithDeadline(ctx, deadline)
	} else {
		merged, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(unit, cancel)
	return merged, func() {
		stop()
		cancel()
	}
}

// IsBroken reports whether an error means that a transaction has ended without a COMMIT:
// its connection is lost, or the server has rolled it back, as after a deadlock.
func IsBroken(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || IsTransient(err) {
		return true
	}
	code, _, ok := FileCode(err)
	if !ok {
		return false
	}
	const interrupted, noMemory, ioError, full = 9, 7, 10, 13 // SQLite's primary codes
	switch code & 0xff {
	case interrupted, noMemory, ioError, full:
		return true
	}
	return false
}
