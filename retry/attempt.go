package retry

import "time"

// Outcome is the outcome of an attempt.
type Outcome string

// The outcomes of attempts.
const (
	// Running attempts have not finished.
	Running Outcome = "running"
	// Succeeded attempts returned no error.
	Succeeded Outcome = "succeeded"
	// Failed attempts returned an error, or panicked.
	Failed Outcome = "failed"
	// Lost attempts crashed: their process died, or their lease expired.
	Lost Outcome = "lost"
	// Cancelled attempts ran when their work was cancelled.
	Cancelled Outcome = "cancelled"
)

// MaxRecorded is the maximum number of unsuccessful attempts that are kept for a work
// item. The newest are kept.
const MaxRecorded = 50

// Attempt is one execution of a work item: of a hook, an alarm or a step of an instance.
type Attempt struct {
	// Number counts the attempts from 1, since the work item was created or since an
	// operator retried it. For an instance, it counts the attempts of the current step.
	Number int
	// Step is the step of an instance. It is empty for other kinds of work.
	Step    string
	Outcome Outcome
	// Error is the error of an unsuccessful attempt, with the stack of a panic.
	Error string
	// Worker is the process that ran the attempt, if known.
	Worker string
	// Began is the time of the claim, if known. Ended is zero while the attempt runs.
	Began, Ended time.Time
}
