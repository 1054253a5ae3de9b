package perdure

import "fmt"

// Priority orders due work: work with a higher priority is claimed first.
type Priority int

// The priorities.
const (
	High   Priority = -1
	Normal Priority = 0
	Low    Priority = 1
)

// Missed is the rule for ticks of a schedule or of a recurring alarm that passed
// while no process ran.
type Missed string

// The rules for missed ticks.
const (
	// MissedOnce runs once for all missed ticks.
	MissedOnce Missed = "once"
	// MissedSkip drops missed ticks. A recurring alarm still fires the tick that it was
	// waiting for. A schedule drops that tick too if it is more than one minute late.
	MissedSkip Missed = "skip"
	// MissedAll runs once for each missed tick, oldest first, at most MaxMissed (in the
	// options) in a row.
	MissedAll Missed = "all"
)

// StateError reports that a work item exists and that its status does not allow the
// operation. Nothing was written. Every kind of work returns it.
type StateError struct {
	// Kind is "hook", "instance", "task", "alarm" or "actor".
	Kind string
	// ID is the id of the item, in the form that its kind uses.
	ID string
	// Status is the status of the item.
	Status string
	// Finished is true if the item is in a final status.
	Finished bool
}

func (e *StateError) Error() string { return fmt.Sprintf("%s %q is %s", e.Kind, e.ID, e.Status) }

// Crash reports that a process crashed, or lost its lease, while it ran a work item.
type Crash struct {
	// Kind is "hook", "instance" or "task".
	Kind string
	// ID is the id of the item. Name is the name of a hook or the type of a task.
	ID, Name string
	// Crashes is the number of crashes of the item. For an instance, it counts crashes
	// since the last completed step.
	Crashes int
	// Quarantined is true if the item runs again only after an operator retries it.
	Quarantined bool
}
