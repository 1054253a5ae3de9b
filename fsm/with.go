package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/work"
)

// With commits changes of the application together with the outcome. fn runs in the
// transaction that records the outcome, after the claim was verified under a lock. The
// writes of fn commit exactly once. They do not commit if another process has claimed the
// instance, if the instance was cancelled, or if the step runs again because of a signal.
//
//	return run.Done(nil).With(func(tx *perdure.Tx) error {
//		_, err := tx.Exec("insert into receipts (id) values ($1)", receipt)
//		return err
//	}), nil
//
// fn may run more than once, like the function of Engine.Update, and must have no side
// effect outside its Tx. If fn returns an error, the step has failed with that error. An
// outcome with a function is committed in its own transaction. The functions of several
// calls run in order.
func (o Outcome) With(fn func(tx *perdure.Tx) error) Outcome {
	o.with = append(slices.Clip(o.with), fn)
	return o
}

func (o Outcome) validateWith(field string) error {
	for _, fn := range o.with {
		if fn == nil {
			return fault.Invalidf(field, "must not have a nil function in With")
		}
	}
	return nil
}

// commitWith commits an outcome that has functions of the application.
func (m *Machines) commitWith(ctx context.Context, e *execution, n int, d work.Decided, then func(error)) {
	err := m.runner.CommitWith(ctx, &d)
	var failure *core.AdditionError
	switch {
	case err == nil:
		then(nil)
	case d.Taken:
		m.runner.Release(e.Item, e.end)
	case errors.Is(err, core.ErrLost):
		m.runner.Lose(e.Item, err, e.end)
	case work.Repeatable(err) || !errors.As(err, &failure) && !sqldb.Refused(err):
		m.runner.Lose(e.Item, fmt.Errorf("commit outcome: %w", err), e.end)
	case d.Outcome.(*claimOutcome).decision.handled:
		m.commitOutcome(e, claimOutcome{decision: failed(fmt.Errorf("error handler: %w", err))})
	default:
		m.lookup(e.instance.FSM, e.instance.Version).recoverFrom(ctx, e, err, func(decided *decision, err error) { m.decided(ctx, e, n, decided, err) })
	}
}
