package alarm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// Move changes the due time of a waiting alarm. A time in the past means now. For a
// recurring alarm, only the next tick is moved. Move returns a *perdure.StateError if the
// alarm is running or a dead letter.
func (a *Admin) Move(ctx context.Context, key Key, to time.Time) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.MoveIn(tx, key, to) })
}

// MoveIn is Move in a unit of work. The unit fails if the alarm cannot be moved.
func (a *Admin) MoveIn(tx *perdure.Tx, key Key, to time.Time) error {
	if to.IsZero() {
		return host.In(tx).Fail(fault.Invalidf("time", "is required"))
	}
	if err := edge.Time("time", to); err != nil {
		return host.In(tx).Fail(err)
	}
	return a.change(tx, "move", key, func(row store.Alarm, _ time.Time) (sqldb.Stmt, error) {
		return a.rt.Store.MoveAlarm(row.Item, *edge.OptionalTime(to)), nil
	})
}

// Skip skips the next tick of a recurring alarm, which then waits for the tick after it.
// Skip returns an error if the alarm does not recur: cancel it instead.
func (a *Admin) Skip(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.SkipIn(tx, key) })
}

// SkipIn is Skip in a unit of work. The unit fails if the tick cannot be skipped.
func (a *Admin) SkipIn(tx *perdure.Tx, key Key) error {
	return a.change(tx, "skip", key, func(row store.Alarm, now time.Time) (sqldb.Stmt, error) {
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
		return a.rt.Store.SkipAlarm(row.Item, next), nil
	})
}

// FireNow makes a waiting alarm due now, including an alarm that waits for a retry. A
// recurring alarm fires one additional time: the time of its next tick does not change.
func (a *Admin) FireNow(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.FireNowIn(tx, key) })
}

// FireNowIn is FireNow in a unit of work. The unit fails if the alarm cannot be fired.
func (a *Admin) FireNowIn(tx *perdure.Tx, key Key) error {
	return a.change(tx, "fire", key, func(row store.Alarm, _ time.Time) (sqldb.Stmt, error) {
		return a.rt.Store.FireAlarm(row.Item, a.rt.Now()), nil
	})
}

// Retry makes a dead letter due now, with all its attempts available again. It returns a
// *perdure.StateError if the alarm is not a dead letter.
func (a *Admin) Retry(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RetryIn(tx, key) })
}

// RetryIn is Retry in a unit of work. The unit fails if the alarm is not a dead letter.
func (a *Admin) RetryIn(tx *perdure.Tx, key Key) error {
	run, row, now, err := a.locked(tx, "retry", key)
	if err != nil {
		return err
	}
	var restarted int64
	items := []string{row.Item}
	err = run.Run(tx.Context(), a.rt.Store.RestartAlarms(items, a.rt.Now(), &restarted))
	if err == nil && restarted == 0 {
		status := Status(store.Refine(row.Status, row.Attempts, row.Due, now))
		err = stateError(key, status)
	}
	if err == nil {
		err = run.Run(tx.Context(), a.rt.Store.Alarms().Ready(items))
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("retry alarm: %w", sqldb.Bare(err)))
	}
	return host.In(tx).Attach(a.due)
}

// due wakes dispatchers because alarms are due.
func (a *Admin) due() { a.rt.Hub.Publish(topic, time.Time{}) }

// locked locks an alarm, and reads the alarm and the database's time. The unit fails if
// there is no such alarm.
func (a *Admin) locked(tx *perdure.Tx, verb string, key Key) (run sqldb.Runner, row store.Alarm, now time.Time, err error) {
	if err := key.find(); err != nil {
		return nil, row, now, host.In(tx).Fail(err)
	}
	if run, err = host.In(tx).Runner(); err != nil {
		return nil, row, now, err
	}
	stmts := a.rt.Store.LockAlarm(key.stored(), func(r store.Alarm) { row = r })
	err = run.Run(tx.Context(), append(stmts, a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { now = t }))...)
	if err == nil && row.Item == "" {
		err = &fault.NotFound{Kind: "alarm", ID: key.String()}
	}
	if err != nil {
		return nil, row, now, host.In(tx).Fail(fmt.Errorf("%s alarm: %w", verb, sqldb.Bare(err)))
	}
	return run, row, now, nil
}

// change locks a waiting alarm and runs a statement that changes its due time. It returns
// a *perdure.StateError if the alarm does not wait.
func (a *Admin) change(tx *perdure.Tx, verb string, key Key, stmt func(store.Alarm, time.Time) (sqldb.Stmt, error)) error {
	run, row, now, err := a.locked(tx, verb, key)
	if err != nil {
		return err
	}
	update, err := stmt(row, now)
	var waited int64
	if err == nil {
		err = run.Run(tx.Context(), a.rt.Store.Alarms().Unready(row.Item, &waited))
	}
	if err == nil && waited == 0 {
		if Status(row.Status).Waits() { // it was claimed after it was read
			row.Status = string(Running)
		}
		err = stateError(key, Status(row.Status))
	}
	if err == nil {
		err = run.Run(tx.Context(), update, a.rt.Store.Alarms().Ready([]string{row.Item}))
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("%s alarm: %w", verb, sqldb.Bare(err)))
	}
	return host.In(tx).Attach(a.due)
}

// batch is the maximum number of rows that one statement changes.
const batch = 1000

// RetryAll makes all dead letters that match the filter due now, and returns their
// number. It changes at most as many alarms as there were dead letters at the start, so
// alarms that fail again concurrently do not keep it running.
func (a *Admin) RetryAll(ctx context.Context, f Filter) (int64, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = Dead
	}
	counts, err := a.Count(ctx, f)
	if err != nil {
		return 0, err
	}
	dead := counts[Failed] + counts[Quarantined]
	if counts[Scheduled]+counts[Ready]+counts[Retrying]+counts[Running] > 0 {
		return 0, fault.Invalidf("filter", "must select dead letters only")
	}
	total, err := a.inBatches(ctx, f, dead, true, a.restartItems)
	if err != nil {
		return total, fmt.Errorf("retry alarms: %w", err)
	}
	a.due()
	return total, nil
}

// restartItems makes locked dead letters due now.
func (a *Admin) restartItems(run sqldb.Runner, ctx context.Context, items []string, restarted *int64) error {
	st := a.rt.Store
	return run.Run(ctx, st.RestartAlarms(items, a.rt.Now(), restarted), st.Alarms().Ready(items))
}

// CancelByType removes all alarms of a type, in any status, and returns their number. It
// does not remove timers of actors.
func (a *Admin) CancelByType(ctx context.Context, typ string) (int64, error) {
	if typ == "" {
		return 0, fault.Invalidf("alarm type", "must not be empty")
	}
	return a.CancelAll(ctx, Filter{Type: typ})
}

// CancelAll removes all alarms that match the filter, and returns their number. The
// filter must not be empty. CancelAll does not remove timers of actors.
func (a *Admin) CancelAll(ctx context.Context, f Filter) (int64, error) {
	if err := f.narrows(); err != nil {
		return 0, err
	}
	total, err := a.inBatches(ctx, f, 1<<62, false, a.cancelItems)
	if err != nil {
		return total, fmt.Errorf("cancel alarms: %w", err)
	}
	return total, nil
}

// CancelAllIn removes all alarms that match the filter in a unit of work. The filter must
// not be empty.
func (a *Admin) CancelAllIn(tx *perdure.Tx, f Filter) error {
	if err := f.narrows(); err != nil {
		return host.In(tx).Fail(err)
	}
	filter, err := f.stored()
	if err != nil {
		return host.In(tx).Fail(err)
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	filter.Limit = batch
	for removed := int64(batch); removed == batch; {
		if err := a.eachOf(tx.Context(), run, filter, false, a.cancelItems, &removed); err != nil {
			return host.In(tx).Fail(fmt.Errorf("cancel alarms: %w", sqldb.Bare(err)))
		}
	}
	return nil
}

// cancelItems removes locked alarms.
func (a *Admin) cancelItems(run sqldb.Runner, ctx context.Context, items []string, removed *int64) error {
	return run.Run(ctx, a.rt.Store.RemoveAlarms(items, func(string) { *removed++ })...)
}

// narrows returns an error if the filter is empty or selects a reserved type.
func (f Filter) narrows() error {
	if strings.HasPrefix(f.Type, reserved) {
		return fault.Invalidf("alarm type", "must not start with %q, which is reserved", reserved)
	}
	if f.ActorType == "" && f.ActorID == "" && f.Type == "" && !f.Unowned && len(f.Statuses) == 0 && f.DueBy.IsZero() {
		return fault.Invalidf("filter", "must not be empty: it would match all alarms")
	}
	return nil
}

// errNone rolls back a unit of work that found nothing to change.
var errNone = errors.New("nothing is left")

// act changes locked alarms and counts the changed ones.
type act func(run sqldb.Runner, ctx context.Context, items []string, changed *int64) error

// eachOf locks up to filter.Limit alarms that match the filter, and calls do with them.
// If skip is true, it skips alarms that another transaction has locked; otherwise it
// waits for them.
func (a *Admin) eachOf(ctx context.Context, run sqldb.Runner, filter store.AlarmFilter, skip bool, do act, changed *int64) error {
	*changed = 0
	var items []string
	if err := run.Run(ctx, a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { filter.Now = t })); err != nil {
		return err
	}
	if err := run.Run(ctx, a.rt.Store.ChooseAlarms(filter, skip, func(item string) { items = append(items, item) })); err != nil || len(items) == 0 {
		return err
	}
	return do(run, ctx, items, changed)
}

// inBatches calls do for the alarms that match the filter, in batches, until no alarm is
// left or the number of changed alarms has reached most.
func (a *Admin) inBatches(ctx context.Context, f Filter, most int64, skip bool, do act) (int64, error) {
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
			run, err := host.In(tx).Runner()
			if err == nil {
				err = a.eachOf(tx.Context(), run, filter, skip, do, &changed)
			}
			if err == nil && changed == 0 {
				err = errNone
			}
			return err
		})
		if err != nil && !errors.Is(err, errNone) {
			return total, sqldb.Bare(err)
		}
		if total += changed; changed < int64(filter.Limit) {
			return total, nil
		}
	}
}

// transact runs fn in a transaction, and retries it after transient errors such as
// deadlocks.
func (a *Admin) transact(ctx context.Context, access sqldb.Access, fn func(sqldb.Tx) error) error {
	return sqldb.Bare(unit.Transact(ctx, a.rt.DB, access, fn))
}

func (a *Admin) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.readIn(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) })
}

// readIn runs fn in a read-only transaction.
func (a *Admin) readIn(ctx context.Context, fn func(sqldb.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return sqldb.Bare(fn(tx))
}
