package alarm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// StateError says that an alarm exists but its status does not allow what was
// asked of it.
type StateError struct {
	Alarm  Key
	Status Status
}

func (e *StateError) Error() string { return fmt.Sprintf("alarm %q is %s", e.Alarm, e.Status) }

// Move changes when a waiting alarm is due; a time in the past means now. Of a
// recurring alarm only the next tick is moved. One that is fired or dead is a
// *StateError.
func (a *Alarms) Move(ctx context.Context, key Key, to time.Time) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.MoveIn(tx, key, to) })
}

// MoveIn is Move in a unit of work, which fails if the alarm cannot be moved.
func (a *Alarms) MoveIn(tx *perdure.Tx, key Key, to time.Time) error {
	if to.IsZero() {
		return tx.Fail(fault.Invalidf("time", "is missing"))
	}
	if err := edge.Time("time", to); err != nil {
		return tx.Fail(err)
	}
	return a.change(tx, "move", key, func(_ store.Alarm, _ time.Time, changed *int64) (sqldb.Stmt, error) {
		return a.rt.Store.MoveAlarm(key.stored(), *at(to), changed), nil
	})
}

// Skip makes a recurring alarm pass its next tick over and wait for the one after
// it. An alarm that does not recur is refused: cancel it.
func (a *Alarms) Skip(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.SkipIn(tx, key) })
}

// SkipIn is Skip in a unit of work, which fails if the tick cannot be skipped.
func (a *Alarms) SkipIn(tx *perdure.Tx, key Key) error {
	return a.change(tx, "skip", key, func(row store.Alarm, now time.Time, changed *int64) (sqldb.Stmt, error) {
		ticks, err := ticksOf(row)
		if err != nil {
			return sqldb.Stmt{}, err
		}
		if ticks.IsZero() {
			return sqldb.Stmt{}, fault.Invalidf("alarm "+key.String(), "does not recur: cancel it instead")
		}
		tick := row.Occurs.UTC()
		if now.After(tick) {
			tick = now
		}
		next := ticks.Next(tick)
		if next.IsZero() {
			return sqldb.Stmt{}, fault.Invalidf("alarm "+key.String(), "has no further tick: cancel it instead")
		}
		return a.rt.Store.SkipAlarm(key.stored(), next, changed), nil
	})
}

// FireNow makes a waiting alarm due now, and one that waits to be tried again
// waits no longer. A recurring alarm fires once more than it would have: its next
// tick stays when it is.
func (a *Alarms) FireNow(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.FireNowIn(tx, key) })
}

// FireNowIn is FireNow in a unit of work, which fails if the alarm cannot be fired.
func (a *Alarms) FireNowIn(tx *perdure.Tx, key Key) error {
	return a.change(tx, "fire", key, func(_ store.Alarm, _ time.Time, changed *int64) (sqldb.Stmt, error) {
		return a.rt.Store.FireAlarm(key.stored(), a.rt.Now(), changed), nil
	})
}

// Retry makes a dead letter due now, with all its attempts before it. One that is
// not dead is a *StateError.
func (a *Alarms) Retry(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RetryIn(tx, key) })
}

// RetryIn is Retry in a unit of work, which fails if the alarm is not dead.
func (a *Alarms) RetryIn(tx *perdure.Tx, key Key) error {
	return a.change(tx, "retry", key, func(_ store.Alarm, _ time.Time, changed *int64) (sqldb.Stmt, error) {
		return a.rt.Store.ReviveAlarm(key.stored(), a.rt.Now(), changed), nil
	})
}

// change locks an alarm and records a statement that must change it; it explains it
// if that does not.
func (a *Alarms) change(tx *perdure.Tx, verb string, key Key, stmt func(store.Alarm, time.Time, *int64) (sqldb.Stmt, error)) error {
	if err := key.check(maxStoredID); err != nil {
		return tx.Fail(err)
	}
	run, err := tx.Runner()
	if err != nil {
		return err
	}
	var changed int64
	var row store.Alarm
	var now time.Time
	err = run.Run(tx.Context(), a.rt.Store.LockAlarm(key.stored(), func(r store.Alarm) { row = r }),
		a.rt.Store.TellTime(a.rt.Now(), func(t time.Time) { now = t }))
	if err != nil {
		return tx.Fail(fmt.Errorf("%s alarm: %w", verb, bare(err)))
	}
	update, err := stmt(row, now, &changed)
	if err == nil {
		err = run.Run(tx.Context(), update)
	}
	if err == nil && changed == 0 {
		err = &StateError{Alarm: key, Status: Status(row.Status)}
	}
	if err != nil {
		return tx.Fail(fmt.Errorf("%s alarm: %w", verb, bare(err)))
	}
	return tx.Attach(func() { a.rt.Hub.Publish(topic, time.Time{}) })
}

// batch is how many rows one statement changes at most.
const batch = 1000

// RetryAll makes all dead letters that meet the filter due now, and returns how
// many. Those that die again meanwhile are left.
func (a *Alarms) RetryAll(ctx context.Context, f Filter) (int64, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = Dead
	}
	counts, err := a.Count(ctx, f)
	if err != nil {
		return 0, err
	}
	dead := counts[Failed] + counts[Quarantined]
	if counts[Pending]+counts[Processing] > 0 {
		return 0, fault.Invalidf("filter", "asks for alarms that are not dead")
	}
	total, err := a.inBatches(ctx, f, dead, func(filter store.AlarmFilter, changed *int64) sqldb.Stmt {
		return a.rt.Store.ReviveAlarms(filter, a.rt.Now(), changed)
	})
	if err != nil {
		return total, fmt.Errorf("retry alarms: %w", err)
	}
	a.rt.Hub.Publish(topic, time.Time{})
	return total, nil
}

// CancelByType removes all alarms of a type, whatever has become of them, and
// returns how many. It does not reach the delays of machines.
func (a *Alarms) CancelByType(ctx context.Context, typ string) (int64, error) {
	if typ == "" {
		return 0, fault.Invalidf("alarm type", "is empty")
	}
	return a.CancelAll(ctx, Filter{Type: typ})
}

// CancelAll removes all alarms that meet the filter, which must narrow, and
// returns how many. It does not reach the delays of machines.
func (a *Alarms) CancelAll(ctx context.Context, f Filter) (int64, error) {
	if err := f.narrows(); err != nil {
		return 0, err
	}
	total, err := a.inBatches(ctx, f, 1<<62, a.rt.Store.CancelAlarms)
	if err != nil {
		return total, fmt.Errorf("cancel alarms: %w", err)
	}
	return total, nil
}

// CancelAllIn removes all alarms that meet the filter, which must narrow, in a
// unit of work.
func (a *Alarms) CancelAllIn(tx *perdure.Tx, f Filter) error {
	if err := f.narrows(); err != nil {
		return tx.Fail(err)
	}
	filter, err := f.stored()
	if err != nil {
		return tx.Fail(err)
	}
	filter.Limit = math.MaxInt32
	return tx.Attach(nil, a.rt.Store.CancelAlarms(filter, new(int64)))
}

// narrows refuses a filter that means everything, or what is not the user's.
func (f Filter) narrows() error {
	if strings.HasPrefix(f.Type, reserved) {
		return fault.Invalidf("alarm type", "begins with %q, which is reserved", reserved)
	}
	if f.ActorType == "" && f.ActorID == "" && f.Type == "" && !f.Unowned && len(f.Statuses) == 0 && f.DueBy.IsZero() {
		return fault.Invalidf("filter", "is empty, and that would be all alarms")
	}
	return nil
}

// errNone ends a unit of work that has found nothing to change.
var errNone = errors.New("nothing is left")

// inBatches runs a statement on what meets the filter, a batch at a time, until
// nothing is left or most rows are changed.
func (a *Alarms) inBatches(ctx context.Context, f Filter, most int64, stmt func(store.AlarmFilter, *int64) sqldb.Stmt) (int64, error) {
	filter, err := f.stored()
	if err != nil {
		return 0, err
	}
	for total := int64(0); ; {
		filter.Limit = int(min(batch, most-total))
		if filter.Limit == 0 {
			return total, nil
		}
		var changed int64
		err := a.eng.Update(ctx, func(tx *perdure.Tx) error {
			err := tx.Attach(nil, stmt(filter, &changed))
			if err == nil {
				err = tx.Flush()
			}
			if err == nil && changed == 0 {
				err = errNone
			}
			return err
		})
		if err != nil && !errors.Is(err, errNone) {
			return total, bare(err)
		}
		if total += changed; changed < int64(filter.Limit) {
			return total, nil
		}
	}
}
