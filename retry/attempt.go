package retry

import "time"

// Outcome is what an attempt came to.
type Outcome string

// The outcomes of attempts.
const (
	// Running attempts have not ended.
	Running Outcome = "running"
	// Succeeded attempts did what they were to do.
	Succeeded Outcome = "succeeded"
	// Failed attempts returned an error, or panicked.
	Failed Outcome = "failed"
	// Lost attempts lost their process, or their claim with its lease.
	Lost Outcome = "lost"
	// Cancelled attempts ran when their work was cancelled.
	Cancelled Outcome = "cancelled"
)

// MaxRecorded is how many attempts that did not succeed are kept of a piece of work:
// the newest ones.
const MaxRecorded = 50

// Attempt is one execution of a piece of work: a hook, an alarm, the step of an
// instance.
type Attempt struct {
	// Number is which one it was since the work was begun, or made to begin again by
	// an operator, from 1. That of an instance counts those of its step.
	Number int
	// Step is that of an instance.
	Step    string
	Outcome Outcome
	// Error is why it did not succeed, with the stack of a panic.
	Error string
	// Worker is the process that made it, where that is known.
	Worker string
	// Began is when it was claimed, where that is known. Ended is zero while it runs.
	Began, Ended time.Time
}
