package fsm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

// With commits changes of the application together with the outcome: fn runs in the
// transaction that records it, after the claim was verified under a lock. What fn
// writes commits exactly once. It does not commit if another process has claimed the
// instance in the meantime, if the instance was cancelled, or if the step runs again
// because of a signal.
//
//	return run.Done(nil).With(func(tx *perdure.Tx) error {
//		_, err := tx.Exec("insert into receipts (id) values ($1)", receipt)
//		return err
//	}), nil
//
// fn may run more than once, like the function of Engine.Update, and must have no
// effect outside its Tx. If fn fails, the step has failed with its error. An outcome
// with a function has its own transaction. Functions of several calls run in order.
func (o Outcome) With(fn func(tx *perdure.Tx) error) Outcome {
	o.with = append(slices.Clip(o.with), fn)
	return o
}

func (o Outcome) validateWith(field string) error {
	for _, fn := range o.with {
		if fn == nil {
			return fault.Invalidf(field, "has a With without a function")
		}
	}
	return nil
}

// settleWith commits an outcome that has functions of the application.
func (q *queue) settleWith(ctx context.Context, c *core.Claim, n int, s settlement) {
	m, e := q.machines, s.execution
	err := m.flusher.commitWith(ctx, &s)
	var failure *core.AdditionError
	switch {
	case err == nil:
		s.then(nil)
	case s.taken:
		q.settle(c, settlement{release: true})
	case errors.Is(err, core.ErrLost):
		q.lose(c, err)
	case repeatable(err) || !errors.As(err, &failure) && !sqldb.Refused(err):
		m.flusher.resolve([]*settlement{&s}, fmt.Errorf("commit outcome: %w", err))
	case s.decision.handled:
		q.settle(c, settlement{decision: failed(fmt.Errorf("error handler: %w", err))})
	default:
		m.lookup(e.instance.FSM, e.instance.Version).recoverFrom(ctx, e, err, func(decided *decision, err error) { q.decided(ctx, c, n, decided, err) })
	}
}

// commitWith commits one outcome in its own transaction, again while the database is
// away, for about as long as the lease lasts.
func (f *flusher) commitWith(ctx context.Context, s *settlement) error {
	until := clock.System.Now().Add(f.machines.options.Lease)
	for attempt := 1; ; attempt++ {
		var news news
		err := f.updateWith(ctx, s, &news)
		if err == nil {
			f.forget([]*settlement{s})
			news.publish(f.machines.rt)
		}
		if err == nil || !repeatable(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

func (f *flusher) updateWith(ctx context.Context, s *settlement, news *news) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	group := []*settlement{s}
	return f.machines.eng.Update(ctx, func(tx *perdure.Tx) error {
		run, err := tx.Runner()
		if err != nil {
			return err
		}
		if _, err := f.verify(tx.Context(), run, group, 0); err != nil {
			return err
		}
		if s.stale {
			return s.loss()
		}
		if s.late == nil { // otherwise the step runs again, and this run counts for nothing
			if err := core.RunAdditions(tx, s.decision.outcome.with); err != nil {
				return err
			}
		}
		w := newWriting(f.machines, news)
		w.add(s)
		stmts := w.statements()
		if empty := f.emptied(group); len(empty) > 0 {
			stmts = append(stmts, f.machines.rt.Store.DropLeases(empty))
		}
		return tx.Attach(nil, stmts...)
	})
}
