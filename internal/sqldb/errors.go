package sqldb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
)

// StmtError reports which statement of a list failed.
type StmtError struct {
	// Index is the statement's index in the list that was passed to Run.
	Index int
	Err   error
}

func (e *StmtError) Error() string { return e.Err.Error() }

// Unwrap returns the statement's error.
func (e *StmtError) Unwrap() error { return e.Err }

// LockTimeout reports that a statement waited for a lock longer than allowed.
type LockTimeout struct {
	// Counter is true if the lock is that of the outbox counter.
	Counter bool
	Err     error
}

func (e *LockTimeout) Error() string { return e.Err.Error() }

// Unwrap returns the error of the database.
func (e *LockTimeout) Unwrap() error { return e.Err }

// Transient marks an error after which the same transaction may be retried from its start:
// a deadlock, a serialization failure, a busy database, or a connection that was lost
// before COMMIT was sent. Nothing was written.
type Transient struct{ Err error }

func (e *Transient) Error() string { return e.Err.Error() }

// Unwrap returns the database's error.
func (e *Transient) Unwrap() error { return e.Err }

// IsTransient reports whether err is a *Transient.
func IsTransient(err error) bool {
	var t *Transient
	return errors.As(err, &t)
}

// Uncertain marks an error that occurred after COMMIT was sent and before its response: the
// transaction may or may not be committed. It never wraps a *Transient: a transaction that
// may be committed must not be retried.
type Uncertain struct{ Err error }

// NewUncertain returns an *Uncertain for the error of a connection, without the marks that
// other layers added.
func NewUncertain(err error) *Uncertain {
	var s *StmtError
	if errors.As(err, &s) {
		err = s.Err
	}
	var t *Transient
	if errors.As(err, &t) {
		err = t.Err
	}
	return &Uncertain{Err: err}
}

func (e *Uncertain) Error() string { return "commit: " + e.Err.Error() }

// Unwrap returns the error of the connection.
func (e *Uncertain) Unwrap() error { return e.Err }

// IsUncertain reports whether err is an *Uncertain, or the *fault.Uncertain that a unit of
// work returns for it.
func IsUncertain(err error) bool {
	var u *Uncertain
	var unit *fault.Uncertain
	return errors.As(err, &u) || errors.As(err, &unit)
}

// ErrDone is returned by a transaction that is already committed or rolled back.
var ErrDone = errors.New("transaction is already closed")

// rollbackTimeout is the time limit for a ROLLBACK. A slower connection is closed, which
// also ends the transaction.
const rollbackTimeout = 3 * time.Second

// RollbackContext returns the context for a ROLLBACK. It does not inherit the caller's
// cancellation, which is the usual reason for a rollback.
func RollbackContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), rollbackTimeout)
}

// CommitContext returns a context for COMMIT that keeps the values of ctx but neither its
// cancellation nor its deadline. A cancellation between COMMIT and its response would turn
// a certain outcome into an uncertain one.
func CommitContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

// Failed returns the translated error of statement i with its index, for drivers.
func Failed(i int, s Stmt, err error) error {
	if s.Fail != nil {
		err = s.Fail(err)
	}
	return &StmtError{Index: i, Err: err}
}

// checkRows passes the row count of statement i to its Done.
func checkRows(i int, s Stmt, rows int64) error {
	if s.Done == nil {
		return nil
	}
	if err := s.Done(rows); err != nil {
		return &StmtError{Index: i, Err: err}
	}
	return nil
}

// CheckRows passes the row count of statement i to its Done, for drivers.
func CheckRows(i int, s Stmt, rows int64) error { return checkRows(i, s, rows) }

// One returns a Done that requires exactly one row and returns otherwise if there is none.
func One(otherwise error) func(int64) error {
	return func(rows int64) error {
		switch rows {
		case 1:
			return nil
		case 0:
			return otherwise
		}
		return fmt.Errorf("expected one row, found %d", rows)
	}
}

// Bare removes the statement index from an error, because callers cannot use it.
func Bare(err error) error {
	var s *StmtError
	if errors.As(err, &s) {
		return s.Err
	}
	return err
}
