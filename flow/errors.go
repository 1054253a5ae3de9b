package flow

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/fsm"
)

// ErrCancelled is the error of calls after the instance was cancelled or has passed its deadline.
// Calls that are recorded still return their results. Return the error: compensation then runs.
var ErrCancelled = errors.New("the function was cancelled")

// ErrInterrupted is wrapped by the StepError of a step with the option Once whose process crashed
// while it ran: it is not known whether the step had an effect.
var ErrInterrupted = errors.New("interrupted by a crash, and must not run again")

// StepError is the error of a step that failed and is not retried. It is recorded, so it is the
// same each time the function runs.
type StepError struct {
	// Step is the key of the step: path, name and occurrence.
	Step string
	// Attempts is the number of attempts.
	Attempts int
	// Message is the error of the last attempt.
	Message string

	interrupted bool
}

func (e *StepError) Error() string { return fmt.Sprintf("step %s: %s", e.Step, e.Message) }

// Is reports whether target is ErrInterrupted and the step was interrupted.
func (e *StepError) Is(target error) bool { return target == ErrInterrupted && e.interrupted }

// EndError is the error of Result for an instance that is finished and not done.
type EndError struct {
	ID      string
	Status  fsm.Status
	Message string
}

func (e *EndError) Error() string {
	return fmt.Sprintf("function %s is %s: %s", e.ID, e.Status, e.Message)
}

// Stop returns an error with which a function finishes as Stopped, with a reason. Compensation
// runs before. A stopped instance is not a dead letter.
func Stop(reason string) error { return &stopError{reason} }

type stopError struct{ reason string }

func (e *stopError) Error() string { return e.reason }

// againError carries the next input of a function.
type againError struct{ input string }

func (e *againError) Error() string { return "the function starts again" }
