package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// sweepLimit is the number of hooks after which a sweep stops removing hooks.
const sweepLimit = 5000

// Run runs statements in a transaction.
type Run func(...sqldb.Stmt) error

// RefusedError reports that the status of a hook does not allow an operation.
type RefusedError struct{ Status string }

func (e *RefusedError) Error() string { return "hook is " + string(e.Status) }

// ItemOf returns the id of the row of a new hook whose id was not chosen by a user.
func ItemOf(id string) string {
	if store.IsItem(id) {
		return id
	}
	return work.NewID()
}

// NewItem returns the id of the row of a new hook whose id was chosen by a user. Ids sort
// in the order in which they are created.
func NewItem() string { return work.NewID() }

// find locks a hook and returns it as read under the lock.
func find(run Run, st *store.Store, id string) (store.Hook, error) {
	var found store.Hook
	exists := false
	if err := run(st.FindHook(id, func(string, string) { exists = true })); err != nil {
		return found, err
	}
	if !exists { // not detected by a failing statement, which would fail the transaction too
		return found, &fault.NotFound{Kind: "hook", ID: id}
	}
	err := sqldb.Bare(run(st.GetHook(id, func(h store.Hook) { found = h })))
	return found, err
}

// Retry makes a hook due now and returns it. A finished hook starts over with all its
// attempts. Retry returns a *RefusedError if the hook is running.
func Retry(run Run, st *store.Store, id string, now store.Now) (store.Hook, error) {
	h, err := find(run, st, id)
	if err != nil {
		return h, err
	}
	if err := awaitOutcome(run, st, h); err != nil {
		return h, err
	}
	var ended, waited int64
	if err := run(st.UnendHook(h.Item, &ended), st.Hooks().Unready(h.Item, &waited)); err != nil {
		return h, err
	}
	due := st.MakeHookDue(h.Item, now)
	switch {
	case ended > 0:
		due = st.RestartHook(h.Item, now)
	case waited == 0:
		return h, &RefusedError{Status: store.StatusRunning}
	}
	return h, run(due, st.Hooks().Ready([]string{h.Item}))
}

// MakeDue makes a waiting hook due now and returns it. It returns a *RefusedError if the hook
// is running or finished.
func MakeDue(run Run, st *store.Store, id string, now store.Now) (store.Hook, error) {
	h, err := find(run, st, id)
	if err != nil {
		return h, err
	}
	if h.Finished != nil {
		return h, &RefusedError{Status: h.Status}
	}
	var waited int64
	if err := run(st.Hooks().Unready(h.Item, &waited)); err != nil {
		return h, err
	}
	if waited == 0 {
		return h, &RefusedError{Status: store.StatusRunning}
	}
	return h, run(st.MakeHookDue(h.Item, now), st.Hooks().Ready([]string{h.Item}))
}

// Cancel cancels a hook and returns it. If the hook is running, its claim is revoked and
// its outcome is dropped. Cancel returns a *RefusedError if the hook has finished.
func Cancel(run Run, st *store.Store, id string, now store.Now) (store.Hook, error) {
	h, err := find(run, st, id)
	if err != nil {
		return h, err
	}
	if h.Finished != nil {
		return h, &RefusedError{Status: h.Status}
	}
	var waited, stopped int64
	if err := run(st.Hooks().Unready(h.Item, &waited), st.CancelHook(h.Item, now, &stopped)); err != nil {
		return h, err
	}
	if stopped == 0 { // a process has completed it concurrently, which takes no lock
		if err := sqldb.Bare(run(st.GetHook(id, func(found store.Hook) { h = found }))); err != nil {
			return h, err
		}
		return h, &RefusedError{Status: h.Status}
	}
	if waited == 0 {
		return h, takeAway(run, st, h.Item, now)
	}
	return h, nil
}

// takeAway revokes the claim of a hook. The lease of the claim remains valid for its
// other work items.
func takeAway(run Run, st *store.Store, item string, now store.Now) error {
	token := ""
	if err := run(st.LeaseOf(item, func(t string) { token = t })); err != nil || token == "" {
		return err
	}
	stmts := st.Hooks().RecordTaken(token, []string{item}, retry.Cancelled, "cancelled while it ran", now)
	return run(append(stmts, st.Interrupt(store.Held{ID: item, Token: token}))...)
}

// awaitOutcome waits until no process is completing a hook that was cancelled while it
// ran. A process that completes a hook does not lock it: it relies on the finished status
// that the cancellation wrote. Before that status is removed, the process must either be
// able to read that its claim was revoked, or have finished its transaction.
func awaitOutcome(run Run, st *store.Store, h store.Hook) error {
	if h.Status != store.StatusCancelled {
		return nil
	}
	token := ""
	if err := run(st.LeaseOf(h.Item, func(t string) { token = t })); err != nil || token == "" {
		return err
	}
	return run(st.TakeLease(token, func(string) {}))
}

// Stop cancels hooks. It ignores hooks that do not exist or have finished.
func Stop(run Run, st *store.Store, ids []string, now store.Now) error {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	for _, id := range ids {
		var refused *RefusedError
		var missing *fault.NotFound
		if _, err := Cancel(run, st, id, now); err != nil && !errors.As(err, &refused) && !errors.As(err, &missing) {
			return err
		}
	}
	return nil
}

// Delete removes a hook and returns the removed hook. It returns a *RefusedError if the
// hook is running.
func Delete(run Run, st *store.Store, id string) (store.Hook, error) {
	h, err := find(run, st, id)
	if err != nil {
		return h, err
	}
	if err := awaitOutcome(run, st, h); err != nil {
		return h, err
	}
	var waited int64
	if err := run(st.Hooks().Unready(h.Item, &waited)); err != nil {
		return h, err
	}
	if waited == 0 && h.Finished == nil {
		return h, &RefusedError{Status: store.StatusRunning}
	}
	return h, run(st.DeleteHooks([]string{h.Item})...)
}

// sweep removes finished hooks that are older than their retention.
func (r *Runner) sweep(ctx context.Context) error {
	var errs []error
	if r.options.Retention >= 0 {
		_, err := Purge(ctx, r.rt, false, r.options.Retention, sweepLimit)
		errs = append(errs, err)
	}
	if r.options.DeadRetention >= 0 {
		_, err := Purge(ctx, r.rt, true, r.options.DeadRetention, sweepLimit)
		errs = append(errs, err)
	}
	if r.options.Sweep != nil {
		errs = append(errs, r.options.Sweep(ctx))
	}
	return errors.Join(errs...)
}

// Purge removes hooks of all namespaces that finished longer than age ago: dead letters
// if dead is true, done and cancelled hooks otherwise. It removes batches until no hook
// is left or at least most hooks are removed. If most is 0, it removes all.
func Purge(ctx context.Context, rt *host.Runtime, dead bool, age time.Duration, most int64) (int64, error) {
	const batch = 1000
	for total := int64(0); ; {
		removed, err := purge(ctx, rt, dead, age, batch)
		if err != nil {
			return total, fmt.Errorf("purge hooks: %w", err)
		}
		total += removed
		if removed < batch || most > 0 && total >= most {
			return total, nil
		}
	}
}

// purge removes a batch, and writes the act to the audit log if it removes a hook.
func purge(ctx context.Context, rt *host.Runtime, dead bool, age time.Duration, batch int) (removed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, rt.Timeout)
	defer cancel()
	err = unit.Transact(ctx, rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		var items []string
		if err := tx.Run(ctx, rt.Store.OldHooks(dead, age, batch, rt.Now(), func(item string) { items = append(items, item) })); err != nil || len(items) == 0 {
			removed = 0
			return err
		}
		removed = int64(len(items))
		if err := tx.Run(ctx, rt.Store.DeleteHooks(items)...); err != nil {
			return err
		}
		return rt.Store.RecordRemoved(ctx, tx, rt.Clock.Now(), removed)
	})
	return removed, err
}
