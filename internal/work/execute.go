package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/tracing"
)

// patience is the time after which a handler that does not return is abandoned, counted from
// the cancellation of its context.
const patience = 10 * time.Second

// Execution describes how a handler runs for an item. It is for kinds whose items have one
// handler; Begin calls Execute.
type Execution struct {
	// Work describes the item in traces.
	Work tracing.Work
	// Timeout is the time limit for the handler.
	Timeout time.Duration
	// Run calls the handler.
	Run func(ctx context.Context) error
	// Decide returns the outcome of an attempt that ended with err and started at began.
	Decide func(err error, began time.Time) any
	// Finish returns the transaction of the kind that commits the outcome of an attempt
	// together with its consequences, or nil if there are none: see CommitApart. with are the
	// functions that the handler has added. Nil: no outcome has consequences.
	Finish func(outcome any, err error, with []func(*perdure.Tx) error) func(context.Context, *Apart) error
	// Committed is called after the outcome was committed. It may be nil.
	Committed func(d *Decided)
}

// Execute runs the handler of an item and commits the outcome. It need not wait for the commit.
func (r *Runner) Execute(ctx context.Context, i *Item, e Execution) {
	began := r.Runtime.Clock.Now()
	handling, additions := core.WithAdditions(ctx)
	handling, span := r.Runtime.Tracer.Process(handling, began, e.Work)
	i.Claim.Call(handling, core.Limits{Timeout: e.Timeout, Patience: patience}, e.Run, func(err error) {
		span.End(err)
		var with []func(*perdure.Tx) error
		if err == nil { // an abandoned handler may still add functions
			for _, fn := range additions.Close() {
				with = append(with, func(tx *perdure.Tx) error { return fn(tx) })
			}
		}
		r.executed(ctx, i, e, err, with, began)
	})
}

// executed commits the outcome of a finished attempt.
func (r *Runner) executed(ctx context.Context, i *Item, e Execution, err error, with []func(*perdure.Tx) error, began time.Time) {
	then := func(err error) { r.End(i, err) }
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, core.ErrTaken): // the outcome is dropped, and the claim is released
		r.Release(i, then)
		return
	case errors.Is(cause, core.ErrLost):
		r.Lose(i, cause, then)
		return
	case err != nil && errors.Is(cause, core.ErrStopping):
		r.Release(i, then)
		return
	}
	if err != nil && r.Undecided(ctx, i, err, then) {
		return
	}
	if err := failpoint.Hit(r.kind.Name + ".executed"); err != nil {
		r.End(i, err)
		return
	}
	i.Claim.Failed = err != nil
	d := &Decided{Item: i, Outcome: e.Decide(err, began), With: with}
	finished := func(err error) {
		if err == nil && e.Committed != nil {
			e.Committed(d)
		}
		if err == nil {
			err = failpoint.Hit(r.kind.Name + ".settled")
		}
		r.End(i, err)
	}
	var finish func(context.Context, *Apart) error
	if e.Finish != nil {
		finish = e.Finish(d.Outcome, err, with)
	}
	if finish == nil && len(with) == 0 {
		r.enqueue(d, finished)
		return
	}
	r.commitApart(ctx, d, e, finish, began, finished)
}

// commitApart commits an outcome in its own transaction, together with its consequences and the
// functions that the handler has added. If one of those functions fails, the attempt has
// failed.
func (r *Runner) commitApart(ctx context.Context, d *Decided, e Execution, finish func(context.Context, *Apart) error, began time.Time, then func(error)) {
	var err error
	if finish != nil {
		err = r.CommitApart(ctx, d, finish)
	} else {
		err = r.CommitWith(ctx, d)
	}
	failure := core.Addition(err)
	switch {
	case err == nil:
		then(nil)
	case d.Taken:
		r.Release(d.Item, then)
	case errors.Is(err, core.ErrLost):
		r.Lose(d.Item, err, then)
	case failure != nil && len(d.With) > 0:
		r.executed(ctx, d.Item, e, failure, nil, began)
	default:
		r.Lose(d.Item, fmt.Errorf("record outcome: %w", err), then)
	}
}
