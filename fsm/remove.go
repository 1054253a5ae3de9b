package fsm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
)

// purgeBatch is the maximum number of instances that one transaction removes.
const purgeBatch = 1000

// Purge removes instances that have been done, stopped or cancelled for longer than age,
// and returns how many it removed. Children of an unfinished parent are kept.
func (a *Admin) Purge(ctx context.Context, age time.Duration) (int64, error) {
	return a.purge(ctx, age, false)
}

// PurgeDead is Purge for dead letters: failed and quarantined instances.
func (a *Admin) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	return a.purge(ctx, age, true)
}

func (a *Admin) purge(ctx context.Context, age time.Duration, dead bool) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	for total := int64(0); ; {
		var ids []string
		err := a.transact(ctx, func(tx sqldb.Tx) error {
			ids = nil
			find := a.rt.Store.OldInstances(dead, age, purgeBatch, a.rt.Now(), func(id string) { ids = append(ids, id) })
			if err := tx.Run(ctx, find); err != nil || len(ids) == 0 {
				return err
			}
			if err := tx.Run(ctx, a.rt.Store.DeleteInstances(ids)...); err != nil {
				return err
			}
			return a.rt.Store.RecordRemoved(ctx, tx, a.rt.Clock.Now(), int64(len(ids)))
		})
		if err != nil {
			return total, fmt.Errorf("purge instances: %w", err)
		}
		if total += int64(len(ids)); len(ids) < purgeBatch {
			return total, nil
		}
	}
}

// Delete removes a finished instance with its history, attempts, signals and keys. It
// returns a *fault.NotFound if there is none. It returns a *perdure.StateError if the
// instance, or the parent that may still read it, is not finished.
func (a *Admin) Delete(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.DeleteIn(tx, id) })
}

// DeleteIn is Delete as part of a unit of work, which fails if the instance cannot
// be deleted.
func (a *Admin) DeleteIn(tx *perdure.Tx, id string) error {
	if !validID(id) {
		return host.In(tx).Fail(unknown(id))
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	st := a.rt.Store
	var found, ended, needed bool
	var parent string
	state := st.FinishedState(id, func(status *string, of string, isNeeded bool) {
		found, ended, parent, needed = true, status != nil, of, isNeeded
	})
	if err := run.Run(tx.Context(), st.LockInstances([]string{id}), state); err != nil {
		return host.In(tx).Fail(fmt.Errorf("delete instance %s: %w", id, err))
	}
	switch {
	case !found:
		return host.In(tx).Fail(unknown(id))
	case !ended:
		return host.In(tx).Fail(stateError(id, live))
	case needed:
		return host.In(tx).Fail(stateError(parent, live))
	}
	return host.In(tx).Attach(nil, st.DeleteInstances([]string{id})...)
}

// sweep removes instances whose retention has passed.
func (m *Machines) sweep(ctx context.Context) error {
	var errs []error
	if m.options.Retention >= 0 {
		_, err := m.Purge(ctx, m.options.Retention)
		errs = append(errs, err)
	}
	if m.options.DeadRetention >= 0 {
		_, err := m.PurgeDead(ctx, m.options.DeadRetention)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
