package perdure

import "fmt"

// Priority orders work that is due: more urgent work is claimed first.
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
	// MissedOnce runs once for all of them.
	MissedOnce Missed = "once"
	// MissedSkip drops them. A recurring alarm still fires the tick that it waited
	// for; a schedule drops that one too if it is more than a minute late.
	MissedSkip Missed = "skip"
	// MissedAll runs once for each, the oldest first, at most MaxMissed of the
	// options in a row.
	MissedAll Missed = "all"
)

// StateError reports that a work item exists and that its status does not allow the
// operation. Nothing was written. Every kind of work returns it.
type StateError struct {
	// Kind is "hook", "instance", "task", "alarm" or "actor".
	Kind string
	// ID names the item as its kind shows it.
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
	// ID names the item. Name is the name of a hook or the type of a task.
	ID, Name string
	// Crashes is the number of crashes of the item; of an instance since its last
	// completed step.
	Crashes int
	// Quarantined is true if the item runs again only after an operator retries it.
	Quarantined bool
}
