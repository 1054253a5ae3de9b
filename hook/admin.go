package hook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
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

// Filter narrows a List. Zero fields do not narrow.
type Filter struct {
	Namespace, Name string
	Statuses        []Status
	// Unit lists the hooks of one unit of work.
	Unit string
	// IDs lists these hooks only. Default: all.
	IDs []string
}

const (
	// DefaultLimit is how many hooks List returns unless told otherwise.
	DefaultLimit = 50
	// MaxLimit is how many hooks List returns at most.
	MaxLimit = 1000
)

// Admin lists and manages the hooks of all namespaces, with or without their
// handlers.
type Admin struct {
	eng *perdure.Engine
	rt  *host.Runtime
}

// NewAdmin returns the administration of the hooks of a database.
func NewAdmin(eng *perdure.Engine) *Admin { return &Admin{eng: eng, rt: host.Of(eng)} }

// List returns hooks, newest first, and the cursor of the next page, which is
// empty after the last one.
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
		if err := run(a.rt.Store.TellTime(a.rt.Now(), func(t time.Time) { filter.Now = t })); err != nil {
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
	var found Record
	var now time.Time
	tell := a.rt.Store.TellTime(a.rt.Now(), func(t time.Time) { now = t })
	if err := a.read(ctx, tell, a.rt.Store.GetHook(id, func(h store.Hook) { found = record(h, now) })); err != nil {
		return Record{}, fmt.Errorf("get hook: %w", err)
	}
	return found, nil
}

// Attempts returns the attempts of a hook, oldest first: the newest
// retry.MaxRecorded that did not succeed, and the one that runs or has succeeded. It
// is a *fault.NotFound if there is no such hook.
func (a *Admin) Attempts(ctx context.Context, id string) ([]retry.Attempt, error) {
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

// Retry makes a hook due now: one that has ended starts over with all its
// attempts, one that waits waits no longer. One that runs is a *perdure.StateError.
func (a *Admin) Retry(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RetryIn(tx, id) })
}

// RetryIn is Retry as part of a unit of work, which fails if the hook cannot be
// retried.
func (a *Admin) RetryIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "retry", id, func(run effect.Run) (store.Hook, error) { return effect.Retry(run, a.rt.Store, id, a.rt.Now()) })
}

// Cancel keeps a hook from being run. If it is running, its context ends soon
// and what comes of it is dropped. One that has ended is a *perdure.StateError.
func (a *Admin) Cancel(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.CancelIn(tx, id) })
}

// CancelIn is Cancel as part of a unit of work, which fails if the hook cannot be
// cancelled.
func (a *Admin) CancelIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "cancel", id, func(run effect.Run) (store.Hook, error) { return effect.Cancel(run, a.rt.Store, id, a.rt.Now()) })
}

// Delete removes a hook for good, whatever has become of it. One that runs is a
// *perdure.StateError: cancel it first.
func (a *Admin) Delete(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.DeleteIn(tx, id) })
}

// DeleteIn is Delete as part of a unit of work, which fails if the hook cannot be
// deleted.
func (a *Admin) DeleteIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "delete", id, func(run effect.Run) (store.Hook, error) { return effect.Delete(run, a.rt.Store, id) })
}

// change does an act on a hook in a unit of work.
func (a *Admin) change(tx *perdure.Tx, verb, id string, act func(effect.Run) (store.Hook, error)) error {
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

// Purge removes done and cancelled hooks that ended longer than age ago,
// and returns how many.
func (a *Admin) Purge(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "is negative")
	}
	return effect.Purge(ctx, a.rt, false, age, 0)
}

// PurgeDead is Purge for dead letters: hooks that failed or were quarantined.
func (a *Admin) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "is negative")
	}
	return effect.Purge(ctx, a.rt, true, age, 0)
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
		if !slices.Contains(Statuses, s) {
			return stored, fault.Invalidf("status", "%q is unknown", s)
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

// A cursor is the place of the last row of a page.
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
