// Package fault holds the errors that a caller decides by.
//
// Every other error is only text with context around it. Match these with
// errors.As (the types) or errors.Is (the sentinels):
//
//	var conflict *fault.Conflict
//	if errors.As(err, &conflict) { … }
//
// The package imports nothing of ours, so that every layer can return its
// errors.
package fault

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by an engine that is closing or closed. Nothing was
// written.
var ErrClosed = errors.New("engine is closed")

// ErrNotMigrated is returned by an engine that was told not to migrate and
// finds a database that is not as this release needs it.
var ErrNotMigrated = errors.New("database is not migrated, run \"perdure migrate\"")

// Invalid says that an input was refused at the edge. Nothing was written.
type Invalid struct {
	// Field names what was refused, from the outside in: "posts.title".
	Field string
	// Reason says what is wrong with it, in one clause: "is longer than 128 bytes".
	Reason string
}

func (e *Invalid) Error() string { return e.Field + " " + e.Reason }

// Invalidf returns an *Invalid for field with a formatted reason.
func Invalidf(field, format string, args ...any) *Invalid {
	return &Invalid{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// NotFound says that the thing addressed does not exist. Nothing was written.
type NotFound struct {
	// Kind is what was looked for: a table's name, "consumer", "hook".
	Kind string
	// ID is the key that was looked for.
	ID string
}

func (e *NotFound) Error() string { return fmt.Sprintf("%s %q does not exist", e.Kind, e.ID) }

// Conflict says that a row changed after it was read. The unit of work was
// re-run as often as its policy allows and conflicted each time; nothing was
// written.
type Conflict struct {
	// Kind is the table of the row.
	Kind string
	// ID is the row's external id.
	ID string
	// Version is the version that the unit expected and did not find.
	Version int64
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("%s %q is no longer at version %d", e.Kind, e.ID, e.Version)
}

// Duplicate says that a unique constraint refused a row. Nothing was written.
type Duplicate struct {
	// Constraint is the name by which the database knows the constraint.
	Constraint string
	// Err is the database's own error.
	Err error
}

func (e *Duplicate) Error() string { return fmt.Sprintf("duplicate value for %s", e.Constraint) }

// Unwrap returns the database's own error.
func (e *Duplicate) Unwrap() error { return e.Err }

// Restricted says that a foreign key refused a change: the row is still
// referenced, or what it refers to is gone. Nothing was written.
type Restricted struct {
	// Constraint is the name by which the database knows the constraint.
	Constraint string
	// Err is the database's own error.
	Err error
}

func (e *Restricted) Error() string { return fmt.Sprintf("reference refused by %s", e.Constraint) }

// Unwrap returns the database's own error.
func (e *Restricted) Unwrap() error { return e.Err }

// Uncertain says that COMMIT was sent and its answer was lost: the unit is
// either committed whole or not at all, and only the database knows. Perdure
// never sends a COMMIT again. With the outbox enabled, look the unit up by its
// id to learn which.
type Uncertain struct {
	// Unit is the id of the unit of work, as its outbox entry records it.
	Unit string
	// Err is what happened to the connection.
	Err error
}

func (e *Uncertain) Error() string {
	return fmt.Sprintf("commit of unit %s has an unknown outcome: %v", e.Unit, e.Err)
}

// Unwrap returns what happened to the connection.
func (e *Uncertain) Unwrap() error { return e.Err }
