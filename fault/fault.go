// Package fault defines the errors that callers can distinguish.
//
// All other errors have only a message. Match the errors of this package with errors.As
// (the types) or errors.Is (the sentinels):
//
//	var conflict *fault.Conflict
//	if errors.As(err, &conflict) { … }
//
// The package imports no other package of Perdure, so that every layer can return its
// errors.
package fault

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by an engine that is closing or closed. Nothing was
// written.
var ErrClosed = errors.New("engine is closed")

// ErrNotMigrated is returned when an engine is opened with NoMigrate and the database
// lacks migrations of this release.
var ErrNotMigrated = errors.New("database is not migrated: run \"perdure migrate\"")

// ErrEngineCommits is returned by Commit and Rollback of a transaction that the application
// got from a Tx, and by statements with that effect. The engine commits the transaction
// when the function of the unit returns nil, and rolls it back otherwise. The unit fails
// with this error, and nothing is written.
var ErrEngineCommits = errors.New("the engine commits the transaction: return nil from the function to commit, or an error to roll back")

// Invalid reports that an input is not valid. Nothing was written.
type Invalid struct {
	// Field is the name of the input, from the outside in: "posts.title".
	Field string
	// Reason describes the error in one clause: "must be at most 128 bytes".
	Reason string
}

func (e *Invalid) Error() string { return e.Field + " " + e.Reason }

// Invalidf returns an *Invalid for field with a formatted reason.
func Invalidf(field, format string, args ...any) *Invalid {
	return &Invalid{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// NotFound reports that the requested object does not exist. Nothing was written.
type NotFound struct {
	// Kind is the kind of the object: a table's name, "consumer", "hook".
	Kind string
	// ID is the id of the object.
	ID string
}

func (e *NotFound) Error() string { return fmt.Sprintf("%s %q does not exist", e.Kind, e.ID) }

// Conflict reports that a row changed after it was read. If the unit of work read the row
// itself, it was run Options.MaxAttempts times and conflicted each time. Nothing was
// written.
type Conflict struct {
	// Kind is the table of the row.
	Kind string
	// ID is the row's external id.
	ID string
	// Version is the version that the unit expected and that the row no longer has.
	Version int64
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("%s %q is no longer at version %d", e.Kind, e.ID, e.Version)
}

// Duplicate reports that a row violates a unique constraint. Nothing was written.
type Duplicate struct {
	// Constraint is the name by which the database knows the constraint.
	Constraint string
	// Err is the database's own error.
	Err error
}

func (e *Duplicate) Error() string { return fmt.Sprintf("duplicate value for %s", e.Constraint) }

// Unwrap returns the database's own error.
func (e *Duplicate) Unwrap() error { return e.Err }

// Restricted reports that a change violates a foreign key: the row is still referenced,
// or the row that it refers to does not exist. Nothing was written.
type Restricted struct {
	// Constraint is the name by which the database knows the constraint.
	Constraint string
	// Err is the database's own error.
	Err error
}

func (e *Restricted) Error() string { return fmt.Sprintf("reference refused by %s", e.Constraint) }

// Unwrap returns the database's own error.
func (e *Restricted) Unwrap() error { return e.Err }

// Uncertain reports that COMMIT was sent and its response was lost. The unit is committed
// completely or not at all, and only the database knows which. Perdure never sends a
// COMMIT again. If the outbox is enabled, look up the unit by its id in the outbox to
// find out.
type Uncertain struct {
	// Unit is the id of the unit of work, as its outbox entry records it.
	Unit string
	// Err is the error of the connection.
	Err error
}

func (e *Uncertain) Error() string {
	return fmt.Sprintf("commit of unit %s has an unknown outcome: %v", e.Unit, e.Err)
}

// Unwrap returns the error of the connection.
func (e *Uncertain) Unwrap() error { return e.Err }

// Locked reports that another transaction held a lock until the caller's context, or
// Options.Timeout, ended. Nothing was written. errors.Is finds the error of the context.
//
// On SQLite, a process that is stopped inside a transaction (SIGSTOP, a debugger) keeps the
// write lock of the file. On Linux, writers of other processes then return a Locked that names
// the process after 4 s, and immediately while it stays stopped. Its Err is not the error of a
// context.
type Locked struct {
	// Lock is the locked object: "row", "outbox counter", or "database" on SQLite, which has
	// one writer.
	Lock string
	// Holder describes the session that holds the lock, if it is known. It is known only for
	// the outbox counter and for the database.
	Holder string
	// Err is the error of the context, together with the database's own error.
	Err error
}

func (e *Locked) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("%s is locked by another transaction: %v", e.Lock, e.Err)
	}
	return fmt.Sprintf("%s is locked by %s: %v", e.Lock, e.Holder, e.Err)
}

// Unwrap returns the error of the context.
func (e *Locked) Unwrap() error { return e.Err }
