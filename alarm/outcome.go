package alarm

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/retry"
)

// outcome is what came of a fire.
type outcome struct {
	// stmts record it, in one transaction.
	stmts []sqldb.Stmt
	// again is when the alarm is due again by our own clock, if it is.
	again time.Time
	event Event
	// err is why the attempt failed, if it did.
	err error
	// stale says afterwards that the outcome was dropped: the claim was no longer
	// held, or the alarm was scheduled anew.
	stale bool
}

// outcome says what came of a fire. What belongs to it (the notification, the dead
// letter) is recorded first and only while the claim is held.
func (a *Alarms) outcome(f *fire, h store.AlarmHold, result error) *outcome {
	o := &outcome{event: f.event(EventFired, a.rt.Clock.Now()), err: result}
	record := a.succeeded
	if result != nil {
		o.event.Error = edge.Message(result.Error())
		record = a.failed
	}
	stmts := record(f, h, o) // which completes the event
	o.stmts = append(a.notices(f.row, h, o.event), stmts...)
	return o
}

// decide commits the outcome of a fire, with what the handler has added to it. If that
// fails, so has the fire.
func (a *Alarms) decide(ctx context.Context, f *fire, h store.AlarmHold, added []func(any) error, result error) (*outcome, error) {
	o := a.outcome(f, h, result)
	if len(added) == 0 || result != nil {
		return o, a.settle(ctx, o.stmts...)
	}
	err := persist(ctx, func(ctx context.Context) error {
		return core.Committing(ctx, func() error { return a.commitWith(ctx, o, added) })
	})
	if failure := core.Addition(err); failure != nil {
		o = a.outcome(f, h, failure)
		err = a.settle(ctx, o.stmts...)
	}
	return o, err
}

// errStale ends the transaction of an outcome that is dropped.
var errStale = errors.New("outcome is stale")

// commitWith commits an outcome together with what the handler has added.
func (a *Alarms) commitWith(ctx context.Context, o *outcome, added []func(any) error) error {
	err := a.eng.Update(ctx, func(tx *perdure.Tx) error {
		o.stale = false
		if err := tx.Attach(nil, o.stmts...); err != nil {
			return err
		}
		if err := tx.Flush(); err != nil {
			return err
		}
		if o.stale {
			return errStale
		}
		return core.RunAdditions[any](tx, added)
	})
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// succeeded removes the alarm, or makes it wait for its next tick.
func (a *Alarms) succeeded(f *fire, h store.AlarmHold, o *outcome) []sqldb.Stmt {
	if f.plan.next.IsZero() {
		return []sqldb.Stmt{a.rt.Store.FinishAlarm(h, &o.stale)}
	}
	o.again = f.plan.next
	return []sqldb.Stmt{a.rt.Store.AdvanceAlarm(h, f.plan.next, f.plan.caughtUp, nil, &o.stale)}
}

// failed keeps the alarm for another attempt, or as a dead letter.
func (a *Alarms) failed(f *fire, h store.AlarmHold, o *outcome) []sqldb.Stmt {
	var policy retry.Policy
	delay, more := time.Duration(0), false
	if err := json.Unmarshal([]byte(f.row.Policy), &policy); err != nil {
		o.event.Error += "\nretry policy cannot be read: " + err.Error()
	} else {
		delay, more = policy.Decide(f.row.Attempts+1, o.err, a.options.Random())
	}
	o.event.Kind = EventDead
	message := o.event.Error
	switch {
	case more:
		o.event.Kind, o.again = EventFailed, a.rt.Clock.Now().Add(delay)
		return a.rt.Store.RetryAlarm(h, message, delay, a.rt.Now(), &o.stale)
	case f.plan.next.IsZero():
		return a.rt.Store.FailAlarm(h, message, a.rt.Now(), &o.stale)
	}
	// A tick that failed for good is kept apart, so that the next one is not lost
	// with it.
	o.again = f.plan.next
	bury := a.rt.Store.BuryAlarm(h, f.row.ID+tickSuffix(f.row), f.row.Payload, message, f.row.Attempts+f.row.Crashes+1, a.rt.Now())
	return append(bury, a.rt.Store.AdvanceAlarm(h, f.plan.next, f.plan.caughtUp, &message, &o.stale))
}

// settle commits an outcome, together with those that end at the same moment. It
// does not end with the handler's context: the work is done. While the database
// cannot be reached it tries again, as long as the claim is ours: an outcome that
// is not recorded is an effect that happens twice.
func (a *Alarms) settle(ctx context.Context, stmts ...sqldb.Stmt) error {
	return persist(ctx, func(ctx context.Context) error { return a.rt.Committer.Commit(ctx, &unit.Unit{Stmts: stmts}) })
}

// persist commits an outcome until the database responds.
func persist(ctx context.Context, commit func(context.Context) error) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := commit(limit)
		var uncertain *fault.Uncertain
		if !sqldb.IsTransient(err) && !errors.As(err, &uncertain) || ctx.Err() != nil || limit.Err() != nil {
			return err
		}
		unit.Pause(limit, attempt)
	}
}

// transact runs fn in a transaction, and again after a deadlock or the like.
func (a *Alarms) transact(ctx context.Context, access sqldb.Access, fn func(sqldb.Tx) error) error {
	return bare(unit.Transact(ctx, a.rt.DB, access, fn))
}

func (a *Alarms) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return bare(tx.Run(ctx, stmts...))
}

// bare removes the statement's number, which means nothing to the caller.
func bare(err error) error {
	var s *sqldb.StmtError
	if errors.As(err, &s) {
		return s.Err
	}
	return err
}
