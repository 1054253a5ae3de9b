package alarm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Admin lists and manages the alarms of a database. It needs no handlers.
type Admin struct {
	eng *perdure.Engine
	rt  *host.Runtime
}

// NewAdmin returns an Admin for a process that has no Alarms of its own.
func NewAdmin(eng *perdure.Engine) (*Admin, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	return &Admin{eng: eng, rt: host.Of(eng)}, nil
}

// Cancel removes a live alarm. If the alarm is running, the context of its handler is
// cancelled soon and its outcome is dropped. Cancel returns a *perdure.StateError if the
// alarm is a dead letter, and a *fault.NotFound if there is no such alarm. An application
// calls Alarms.Cancel, to which a missing alarm is not an error.
func (a *Admin) Cancel(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.CancelIn(tx, key) })
}

// CancelIn is Cancel as part of a unit of work. The unit fails if the alarm cannot be
// cancelled.
func (a *Admin) CancelIn(tx *perdure.Tx, key Key) error {
	return a.remove(tx, "cancel", key, func(run sqldb.Runner, row store.Alarm) error {
		if Status(row.Status).Finished() {
			return stateError(key, Status(row.Status))
		}
		return nil
	})
}

// Delete removes an alarm permanently, in any status except running. It returns a
// *perdure.StateError if the alarm is running: cancel it first.
func (a *Admin) Delete(ctx context.Context, key Key) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.DeleteIn(tx, key) })
}

// DeleteIn is Delete as part of a unit of work. The unit fails if the alarm cannot be
// deleted.
func (a *Admin) DeleteIn(tx *perdure.Tx, key Key) error {
	return a.remove(tx, "delete", key, func(run sqldb.Runner, row store.Alarm) error {
		if Status(row.Status).Finished() {
			return nil
		}
		var waited int64
		if err := run.Run(tx.Context(), a.rt.Store.Alarms().Unready(row.Item, &waited)); err != nil || waited > 0 {
			return err
		}
		return stateError(key, Running)
	})
}

// remove locks and removes an alarm if allowed returns nil.
func (a *Admin) remove(tx *perdure.Tx, verb string, key Key, allowed func(sqldb.Runner, store.Alarm) error) error {
	run, row, _, err := a.locked(tx, verb, key)
	if err != nil {
		return err
	}
	if err = allowed(run, row); err == nil {
		err = run.Run(tx.Context(), a.rt.Store.RemoveAlarms([]string{row.Item}, func(string) {})...)
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("%s alarm: %w", verb, sqldb.Bare(err)))
	}
	return nil
}

// find returns a *fault.NotFound if no stored alarm can have the key.
func (k Key) find() error {
	if k.check(maxStoredID) != nil {
		return &fault.NotFound{Kind: "alarm", ID: k.String()}
	}
	return nil
}

func stateError(key Key, s Status) error {
	return &perdure.StateError{Kind: "alarm", ID: key.String(), Status: string(s), Finished: s.Finished()}
}
