// Package inspect reads data for operators: lists over millions of rows, upcoming work,
// dead letters, and the amounts of all kinds of work.
//
// The cost of a query does not depend on the number of rows. A statement walks along an
// index from the end of the last page, and counts stop at a cap. A page that would need a
// longer walk ends early, with a cursor for the rest.
package inspect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/histogram"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Cap is the number up to which rows are counted.
const Cap = 1000

// Inspector reads one database.
type Inspector struct {
	rt       *host.Runtime
	machines *fsm.Machines

	mu      sync.Mutex
	waited  histogram.Counts // by the workers of this process, as of the last sample
	sampled time.Time        // the interval of the last sample
}

// New returns the inspector of an engine.
func New(eng *perdure.Engine, machines *fsm.Machines) *Inspector {
	return &Inspector{rt: host.Of(eng), machines: machines}
}

// view runs fn on one snapshot.
func (i *Inspector) view(ctx context.Context, fn func(run sqldb.Runner) error) error {
	ctx, cancel := context.WithTimeout(ctx, i.rt.Timeout)
	defer cancel()
	tx, err := i.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(tx)
}

// read runs statements on one snapshot.
func (i *Inspector) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return i.view(ctx, func(run sqldb.Runner) error { return run.Run(ctx, stmts...) })
}

// now returns the time that decides which work is due.
func (i *Inspector) now(ctx context.Context, run sqldb.Runner) (now time.Time, err error) {
	err = run.Run(ctx, i.rt.Store.ReadTime(i.rt.Now(), func(t time.Time) { now = t }))
	return now, err
}

// encode returns the cursor for the position at which a page ended.
func encode(position any) (string, error) {
	raw, err := json.Marshal(position)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// decode reads the position after which a page starts. An empty cursor leaves it unchanged.
func decode(cursor string, position any) error {
	if cursor == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, position)
	}
	if err != nil {
		return fault.Invalidf("cursor", "is malformed")
	}
	return nil
}

// Signals returns the inbox of an instance, in the order of arrival, and the cursor
// of the next page.
func (i *Inspector) Signals(ctx context.Context, id, cursor string, limit int) ([]store.SignalView, string, error) {
	var after int64
	if err := decode(cursor, &after); err != nil {
		return nil, "", err
	}
	if _, err := i.machines.Get(ctx, id); err != nil {
		return nil, "", err
	}
	var found []store.SignalView
	list := i.rt.Store.SignalsOf(id, after, limit+1, func(s store.SignalView) { found = append(found, s) })
	if err := i.read(ctx, list); err != nil {
		return nil, "", fmt.Errorf("list signals: %w", err)
	}
	if len(found) <= limit {
		return found, "", nil
	}
	next, err := encode(found[limit-1].Seq)
	return found[:limit], next, err
}

// Wait returns what an instance waits for, or nil.
func (i *Inspector) Wait(ctx context.Context, id string) (*store.Wait, error) {
	var found *store.Wait
	if err := i.read(ctx, i.rt.Store.WaitOf(id, func(w store.Wait) { found = &w })); err != nil {
		return nil, fmt.Errorf("read awaited signals: %w", err)
	}
	return found, nil
}
