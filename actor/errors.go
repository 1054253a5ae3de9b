package actor

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
)

// QuarantinedError is returned for an actor that is suspended because it cannot be loaded or
// a transition failed without a caller. Nothing was written. See Actors.Resume.
type QuarantinedError struct {
	Ref Ref
	// Reason is the reason of the quarantine.
	Reason string
}

func (e *QuarantinedError) Error() string {
	return fmt.Sprintf("actor %s is quarantined: %s", e.Ref, e.Reason)
}

// VersionError is returned for an actor whose version of the statechart this process does not
// have. A process of another release has it. Nothing was written.
type VersionError struct {
	Ref Ref
	// Has is the actor's version. Known is the version of this process.
	Has, Known int64
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("actor %s is at version %d of its statechart, this process has version %d", e.Ref, e.Has, e.Known)
}

// KeyError is returned for an event whose idempotency key was used for another event, or by another
// caller. Nothing was written.
type KeyError struct {
	Ref Ref
	Key string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("actor %s has handled another event with the key %q", e.Ref, e.Key)
}

func notFound(ref Ref) error { return &fault.NotFound{Kind: "actor", ID: ref.String()} }

func unknownType(name string) error { return &fault.NotFound{Kind: "actor type", ID: name} }

func exists(ref Ref) error { return &fault.Duplicate{Constraint: "actor " + ref.String()} }

// finished returns the error of an operation that is not allowed on a finished actor.
func finished(ref Ref, status Status) error {
	return &perdure.StateError{Kind: "actor", ID: ref.String(), Status: string(status), Finished: true}
}
