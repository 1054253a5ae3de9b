package actor

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
)

// QuarantinedError says that an actor stands still because it cannot be loaded
// or moved. Nothing was written. See Actors.Resume.
type QuarantinedError struct {
	Ref Ref
	// Reason says what is wrong.
	Reason string
}

func (e *QuarantinedError) Error() string {
	return fmt.Sprintf("actor %s is quarantined: %s", e.Ref, e.Reason)
}

// VersionError says that an actor runs a version of its machine that this
// process does not have: another release does. Nothing was written.
type VersionError struct {
	Ref Ref
	// Has is the actor's version, Known the one of this process.
	Has, Known int64
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("actor %s is at version %d of its machine, this process knows %d", e.Ref, e.Has, e.Known)
}

func notFound(ref Ref) error { return &fault.NotFound{Kind: "actor", ID: ref.String()} }

func unknownType(name string) error { return &fault.NotFound{Kind: "actor type", ID: name} }

func exists(ref Ref) error { return &fault.Duplicate{Constraint: "actor " + ref.String()} }

// finished is the error of an operation that a finished actor does not allow.
func finished(ref Ref, status Status) error {
	return &perdure.StateError{Kind: "actor", ID: ref.String(), Status: string(status), Finished: true}
}
