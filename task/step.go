package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// step is a decision about a claimed task: a function runs, and the task finishes,
// continues or fails. All of this is one transaction.
type step struct {
	// function is called with payload. Empty: none.
	function, payload string
	// before is true for the before-handler: if it accepts, the task continues.
	before bool
	// message is an error to be recorded.
	message string
	// failure is set if the attempt has failed.
	failure *store.TaskFailure
	// added are the functions that the sender has added.
	added []func(*perdure.Tx) error

	trace    *string  // trace for tasks that the function enqueues
	envelope Envelope // result of the function
}

// ends reports whether the step finishes the task.
func (s *step) ends() bool { return !s.before || s.envelope.ValidationFailure != "" }

// messages returns the errors that are recorded with the step.
func (s *step) messages() (all []string) {
	if s.message != "" {
		all = append(all, edge.Message(s.message))
	}
	if refusal := s.envelope.ValidationFailure; refusal != "" {
		all = append(all, edge.Message(s.function+": "+refusal))
	}
	return all
}

// absentError reports that a step was not committed, or may not have been, because the
// database was unavailable.
type absentError struct{ error }

func (e absentError) Unwrap() error { return e.error }

// commit commits a step and then calls then. Steps without a function or with a quick
// one share a transaction with the steps of other tasks; commit does not wait for that
// transaction. The error is core.ErrLost if the claim was lost.
func (w *Worker) commit(ctx context.Context, i *work.Item, s *step, then func(error)) {
	d := &work.Decided{Item: i, Outcome: s, Alone: true, With: s.added}
	s.trace = tracing.Of(ctx)
	if s.function != "" && !w.runsFunctions() {
		d.With = append([]func(*perdure.Tx) error{func(tx *perdure.Tx) error { return w.call(ctx, tx, s) }}, s.added...)
	}
	alone := func() { then(w.problem(s, w.runner.CommitAlone(ctx, d))) }
	switch {
	case len(d.With) > 0:
		then(w.problem(s, w.runner.CommitWith(ctx, d)))
	case s.function != "" && !w.pace.quick(s.function):
		alone()
	default:
		w.runner.CommitOutcome(*d, func(err error) {
			switch {
			case err == nil:
				then(nil)
			case errors.Is(err, work.ErrGroup):
				i.Claim.Go(alone)
			default:
				i.Claim.Go(func() { then(w.problem(s, err)) })
			}
		})
	}
}

// committed commits a step and waits for it.
func (w *Worker) committed(ctx context.Context, i *work.Item, s *step) error {
	done := make(chan error, 1)
	w.commit(ctx, i, s, func(err error) { done <- err })
	return <-done
}

// problem translates the error of a commit.
func (w *Worker) problem(s *step, err error) error {
	var failed *core.AdditionError
	var raised *store.TaskFunctionError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, core.ErrLost):
		return core.ErrLost
	case sqldb.IsTransient(err), sqldb.IsUncertain(err):
		return absentError{err}
	case errors.As(err, &failed):
		return failed.Err
	case errors.As(err, &raised):
		w.pace.failed(s.function)
		return refused(raised)
	}
	return bare(err)
}

// call runs a registered Go function, on SQLite.
func (w *Worker) call(ctx context.Context, tx *perdure.Tx, s *step) (err error) {
	fn := w.options.Functions[s.function]
	switch {
	case !functionName.MatchString(s.function):
		return refusedf("malformed function name")
	case fn == nil:
		return refusedf("function %s does not exist", s.function)
	}
	if s.envelope, err = fn(ctx, tx, json.RawMessage(s.payload)); err != nil {
		return fmt.Errorf("function %s: %w", s.function, err)
	}
	return s.envelope.check(s.function)
}

// refused marks a permanent error: the function has an invalid name, does not exist or
// may not be executed.
func refused(err *store.TaskFunctionError) error {
	switch err.Code {
	case "22023", "42501", "42809", "42883", "3F000":
		return retry.Stop(err)
	}
	return err
}

// bare removes the statement index, which is of no use to the reader.
func bare(err error) error {
	var s *sqldb.StmtError
	if errors.As(err, &s) {
		return s.Err
	}
	return err
}

// pace records which functions of the database are quick. Only quick functions share
// transactions: the other tasks of a group wait for each function, and a function runs
// again alone if another one fails.
type pace struct {
	mu      sync.Mutex
	average map[string]time.Duration
}

// quickLimit is the longest average duration of a quick function.
const quickLimit = 10 * time.Millisecond

// quick reports whether a function is known to be quick.
func (p *pace) quick(function string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	average, known := p.average[function]
	return known && average < quickLimit
}

// took records the duration of a function.
func (p *pace) took(function string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	average, known := p.average[function]
	if !known {
		if p.average == nil {
			p.average = map[string]time.Duration{}
		}
		average = d
	}
	p.average[function] = average + (d-average)/8
}

// failed records that a function failed. It does not share transactions until its
// average duration is below quickLimit again.
func (p *pace) failed(function string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.average[function]; known {
		p.average[function] = 2 * quickLimit
	}
}
