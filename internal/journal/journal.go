// Package journal connects durable functions (package flow) with the instances that run them
// (package fsm). Neither imports the internals of the other.
package journal

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Run is the only step of the definition of a function.
const Run = "run"

// Function is a definition of package flow.
type Function interface {
	// Name and Version identify the definition.
	Name() string
	Version() int
	// Earlier returns the earlier versions whose instances the definition runs.
	Earlier() []int
	// Machine returns the definition of its instances, an *fsm.Definition with the step Run.
	Machine() any
	// Run runs the function for an instance and then calls Session.End. It may end its goroutine.
	Run(s Session)
}

// Progress has the results of a function since its last commit.
type Progress struct {
	// Reset is true if Rows replace the journal.
	Reset bool
	// Rows are new rows of the journal.
	Rows []store.JournalRow
	// Consumed are the signals that were received.
	Consumed []int64
	// Children are instances to start.
	Children []store.NewInstance
}

// Empty reports whether there is nothing to commit.
func (p Progress) Empty() bool { return !p.Reset && len(p.Rows)+len(p.Consumed)+len(p.Children) == 0 }

// Kind is the kind of the end of a run.
type Kind int

// The kinds of ends.
const (
	// Done, Failed, Stopped and Cancelled finish the instance.
	Done Kind = iota + 1
	Failed
	Stopped
	Cancelled
	// Parked waits for a signal with one of the Names, for at most Wait. Without names it waits
	// for Wait.
	Parked
	// Retried runs again after Wait, because of the failure Err.
	Retried
	// Again runs again with the Input, with an empty journal.
	Again
	// Panicked leaves the decision to the retry policy of the definition.
	Panicked
	// Unwound has no decision: the claim was lost, or the process is stopping.
	Unwound
)

// End is the decision at the end of a run.
type End struct {
	Kind Kind
	// Progress is committed with the decision.
	Progress Progress
	// Result is the JSON result of Done. Input is the JSON input of Again.
	Result, Input string
	// Err is the reason of Failed, Stopped, Cancelled, Retried and Panicked.
	Err error
	// Names and Wait belong to Parked and Retried. A nil Wait has no limit.
	Names []string
	Wait  *time.Duration
	// Failures is the number of failures of the step that is retried.
	Failures int
}

// ErrEnded is the error of a commit after the run has ended, or of a commit that failed. The
// function must not continue.
var ErrEnded = errors.New("the run of the function has ended")

// StepError is the error of a function in a transaction: the attempt of the step failed.
type StepError struct{ Err error }

func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the function.
func (e *StepError) Unwrap() error { return e.Err }

// Session is the run of a function for a claimed instance. It is safe for concurrent use.
type Session interface {
	// Instance returns the row of the instance. Its state is the input.
	Instance() *store.Instance
	// Rows returns the journal in order.
	Rows() []store.JournalRow
	// Inbox returns the signals of the instance in order of arrival.
	Inbox() []store.Signal
	// Context is cancelled if the claim is lost or the process is stopping.
	Context() context.Context
	// Clock and Random are those of the engine and of the machines.
	Clock() clock.Clock
	Random() float64
	// NewID returns a new id of an instance.
	NewID() string
	// Limit is the largest result in bytes.
	Limit() int
	// Policy returns the retry policy of steps that set none.
	Policy() retry.Policy
	// Trace is the trace of the run, for children.
	Trace() *string
	// Commit commits progress and waits for the commit.
	Commit(p Progress) error
	// Transact commits progress together with the row that fn returns, in one transaction in
	// which fn has written. It returns a *StepError if fn failed. fn may run more than once.
	Transact(p Progress, fn func(tx *perdure.Tx) (store.JournalRow, error)) error
	// End sets the decision. The run must end after it. Only the first call counts.
	End(e End)
	// Abandon ends the run with a decision while the function is still running.
	Abandon(e End)
}
