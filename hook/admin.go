package hook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Filter selects hooks for List. Zero fields match every hook.
type Filter struct {
	Namespace, Name string
	Statuses        []Status
	// Unit selects the hooks of one unit of work.
	Unit string
	// IDs selects the hooks with these ids. Default: all.
	IDs []string
}

const (
	// DefaultLimit is the default maximum number of hooks that List returns.
	DefaultLimit = 50
	// MaxLimit is the highest limit that List accepts.
	MaxLimit = 1000
)

// Admin lists and manages the hooks of all namespaces. It needs no handlers.
type Admin struct {
	eng *perdure.Engine
	rt  *host.Runtime
}

// NewAdmin returns an Admin for a process that has no Hooks of its own.
func NewAdmin(eng *perdure.Engine) (*Admin, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	return &Admin{eng: eng, rt: host.Of(eng)}, nil
}

// List returns hooks, newest first, and the cursor of the next page. The cursor is empty
// on the last page.
func (a *Admin) List(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, "", err
	}
	filter, err := f.stored(cursor, limit+1)
	if err != nil {
		return nil, "", err
	}
	var records []Record
	err = a.snapshot(ctx, func(run effect.Run) error {
		if err := run(a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { filter.Now = t })); err != nil {
			return err
		}
		return run(a.rt.Store.ListHooks(filter, func(h store.Hook) { records = append(records, record(h, filter.Now)) }))
	})
	if err != nil {
		return nil, "", fmt.Errorf("list hooks: %w", err)
	}
	if len(records) <= limit {
		return records, "", nil
	}
	records = records[:limit]
	return records, encodeCursor(records[limit-1]), nil
}

// Get returns one hook, or a *fault.NotFound.
func (a *Admin) Get(ctx context.Context, id string) (Record, error) {
	if err := find(id); err != nil {
		return Record{}, err
	}
	var found Record
	var now time.Time
	readTime := a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { now = t })
	if err := a.read(ctx, readTime, a.rt.Store.GetHook(id, func(h store.Hook) { found = record(h, now) })); err != nil {
		return Record{}, fmt.Errorf("get hook: %w", err)
	}
	return found, nil
}

// Attempts returns the attempts of a hook, oldest first: the newest retry.MaxRecorded
// attempts that did not succeed, and the attempt that is running or succeeded. It returns
// a *fault.NotFound if there is no such hook.
func (a *Admin) Attempts(ctx context.Context, id string) ([]retry.Attempt, error) {
	if err := find(id); err != nil {
		return nil, err
	}
	var attempts []retry.Attempt
	var h store.Hook
	err := a.snapshot(ctx, func(run effect.Run) error {
		if err := run(a.rt.Store.GetHook(id, func(found store.Hook) { h = found })); err != nil {
			return err
		}
		return run(a.rt.Store.ListAttempts(store.TriedHook(h.Item), func(t retry.Attempt) { attempts = append(attempts, t) }))
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts of hook: %w", err)
	}
	last := retry.Attempt{Number: h.Attempts + h.Crashes, Worker: edge.Value(h.Worker), Began: edge.UTC(h.LastAttempt), Ended: edge.UTC(h.Finished)}
	switch Status(h.Status) {
	case Running:
		last.Number++
		last.Outcome = retry.Running
	case Done:
		last.Outcome = retry.Succeeded
	default:
		return attempts, nil
	}
	return append(attempts, last), nil
}

// Retry makes a hook due now. A finished hook starts over with all its attempts. It
// returns a *perdure.StateError if the hook is running.
func (a *Admin) Retry(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RetryIn(tx, id) })
}

// RetryIn is Retry as part of a unit of work. The unit fails if the hook cannot be
// retried.
func (a *Admin) RetryIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "retry", id, func(run effect.Run) (store.Hook, error) { return effect.Retry(run, a.rt.Store, id, a.rt.Now()) })
}

// RunNow makes a hook due now that waits for its due time or for another attempt. Its
// attempts are kept. It returns a *perdure.StateError if the hook is running or finished.
func (a *Admin) RunNow(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RunNowIn(tx, id) })
}

// RunNowIn is RunNow as part of a unit of work. The unit fails if the hook does not wait.
func (a *Admin) RunNowIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "run", id, func(run effect.Run) (store.Hook, error) { return effect.MakeDue(run, a.rt.Store, id, a.rt.Now()) })
}

// Cancel cancels a hook. If the hook is running, the context of its handler is cancelled
// soon and its outcome is dropped. Cancel returns a *perdure.StateError if the hook has
// finished.
func (a *Admin) Cancel(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.CancelIn(tx, id) })
}

// CancelIn is Cancel as part of a unit of work. The unit fails if the hook cannot be
// cancelled.
func (a *Admin) CancelIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "cancel", id, func(run effect.Run) (store.Hook, error) { return effect.Cancel(run, a.rt.Store, id, a.rt.Now()) })
}

// Delete removes a hook permanently, in any status except running. It returns a
// *perdure.StateError if the hook is running: cancel it first.
func (a *Admin) Delete(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.DeleteIn(tx, id) })
}

// DeleteIn is Delete as part of a unit of work. The unit fails if the hook cannot be
// deleted.
func (a *Admin) DeleteIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "delete", id, func(run effect.Run) (store.Hook, error) { return effect.Delete(run, a.rt.Store, id) })
}

// change applies act to a hook in a unit of work, and wakes the dispatchers of its
// namespace after the commit.
func (a *Admin) change(tx *perdure.Tx, verb, id string, act func(effect.Run) (store.Hook, error)) error {
	if err := find(id); err != nil {
		return host.In(tx).Fail(fmt.Errorf("%s hook: %w", verb, err))
	}
	runner, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	found, err := act(func(stmts ...sqldb.Stmt) error { return runner.Run(tx.Context(), stmts...) })
	var refused *effect.RefusedError
	if errors.As(err, &refused) {
		err = &perdure.StateError{Kind: "hook", ID: id, Status: refused.Status, Finished: Status(refused.Status).Finished()}
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("%s hook: %w", verb, err))
	}
	return host.In(tx).Attach(func() { a.rt.Hub.Publish("hook/"+found.Namespace, time.Time{}) })
}

// Purge removes done and cancelled hooks that finished longer than age ago, and returns
// how many it removed.
func (a *Admin) Purge(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	return effect.Purge(ctx, a.rt, false, age, 0)
}

// PurgeDead is Purge for dead letters: hooks that failed or were quarantined.
func (a *Admin) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	return effect.Purge(ctx, a.rt, true, age, 0)
}

// find returns a *fault.NotFound if no hook can have the id.
func find(id string) error {
	if id == "" || edge.Text("id", id, maxID) != nil {
		return &fault.NotFound{Kind: "hook", ID: id}
	}
	return nil
}

func (a *Admin) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.snapshot(ctx, func(run effect.Run) error { return run(stmts...) })
}

// snapshot runs fn on one snapshot of the database.
func (a *Admin) snapshot(ctx context.Context, fn func(effect.Run) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return sqldb.Bare(fn(func(stmts ...sqldb.Stmt) error { return tx.Run(ctx, stmts...) }))
}

func (f Filter) stored(cursor string, limit int) (store.HookFilter, error) {
	stored := store.HookFilter{Namespace: f.Namespace, Name: f.Name, Unit: f.Unit, IDs: f.IDs, Limit: limit}
	for _, s := range f.Statuses {
		if err := edge.OneOf("status", s, Statuses); err != nil {
			return stored, err
		}
		stored.Statuses = append(stored.Statuses, string(s))
	}
	if cursor == "" {
		return stored, nil
	}
	var err error
	stored.BeforeCreated, stored.BeforeItem, err = decodeCursor(cursor)
	return stored, err
}

// A cursor is the position of the last row of a page.
func encodeCursor(r Record) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(r.Created.UnixMicro(), 10) + " " + r.item))
}

func decodeCursor(cursor string) (time.Time, string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	micros, id, found := strings.Cut(string(raw), " ")
	us, parse := strconv.ParseInt(micros, 10, 64)
	if err != nil || !found || parse != nil || !store.IsItem(id) {
		return time.Time{}, "", fault.Invalidf("cursor", "is malformed")
	}
	return time.UnixMicro(us).UTC(), id, nil
}
