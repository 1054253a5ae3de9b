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
func (m *Machines) Purge(ctx context.Context, age time.Duration) (int64, error) {
	return m.purge(ctx, age, false)
}

// PurgeDead is Purge for dead letters: failed and quarantined instances.
func (m *Machines) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	return m.purge(ctx, age, true)
}

func (m *Machines) purge(ctx context.Context, age time.Duration, dead bool) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	for total := int64(0); ; {
		var ids []string
		err := m.transact(ctx, func(tx sqldb.Tx) error {
			ids = nil
			find := m.rt.Store.OldInstances(dead, age, purgeBatch, m.rt.Now(), func(id string) { ids = append(ids, id) })
			if err := tx.Run(ctx, find); err != nil || len(ids) == 0 {
				return err
			}
			if err := tx.Run(ctx, m.rt.Store.DeleteInstances(ids)...); err != nil {
				return err
			}
			return m.rt.Store.RecordRemoved(ctx, tx, m.rt.Clock.Now(), int64(len(ids)))
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
func (m *Machines) Delete(ctx context.Context, id string) error {
	return m.eng.Update(ctx, func(tx *perdure.Tx) error { return m.DeleteIn(tx, id) })
}

// DeleteIn is Delete as part of a unit of work, which fails if the instance cannot
// be deleted.
func (m *Machines) DeleteIn(tx *perdure.Tx, id string) error {
	if !validID(id) {
		return host.In(tx).Fail(fault.Invalidf("instance id", "must be a UUID in lower case"))
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	st := m.rt.Store
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
		return host.In(tx).Fail(&fault.NotFound{Kind: "instance", ID: id})
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
