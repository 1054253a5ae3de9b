// Package outbox reads the ordered record of all changes made by units of work.
//
// Each committed unit has one Entry. Entries are in commit order: after a reader has seen
// a stamp, no new entry with a smaller stamp will appear. Within an incarnation the
// counters have no gaps. A unit reserves its number in its own transaction, as the last
// step before COMMIT, so a rollback also returns the number.
//
//	for entry, err := range eng.Outbox().Tail(ctx, cursor, nil) {
//		if err != nil {
//			return err
//		}
//		… apply entry.Payload.Mutations elsewhere, remember entry.Stamp …
//	}
//
// Read from the primary. The order also holds on a replica, but rows that were written
// without the outbox may appear there in another order.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

const (
	// DefaultLimit is the default maximum number of entries that List returns.
	DefaultLimit = 100
	// MaxLimit is the highest limit that List accepts.
	MaxLimit = 1000
	// timeout bounds each call to the database.
	timeout = 30 * time.Second
)

// Outbox reads and maintains the outbox of one database. It works even if Options.Outbox
// is false, that is, if the engine does not write to the outbox. It is safe for
// concurrent use.
type Outbox struct {
	store *store.Store
	clock clock.Clock
	host  Host

	mu      sync.Mutex
	changed chan struct{} // closed and replaced by Wake
	stop    context.CancelFunc
	stopped context.Context
	running sync.WaitGroup
}

// Entry is the record of one committed unit of work.
type Entry struct {
	// Stamp is the entry's position in the order. Its user version is 0.
	Stamp Stamp
	// Unit is the id of the unit of work.
	Unit string
	// Payload has the changes of the unit, with all references resolved.
	Payload Payload
	// Created is the time when the unit was committed, by the clock of its process.
	Created time.Time
}

// New returns the outbox of a store. Applications get it from Engine.Outbox.
func New(st *store.Store, h Host) *Outbox {
	o := &Outbox{store: st, clock: h.Clock, host: h, changed: make(chan struct{})}
	o.stopped, o.stop = context.WithCancel(context.Background())
	return o
}

// Close stops the Tails and the retention of this process.
func (o *Outbox) Close() {
	o.stop()
	o.running.Wait()
}

// Wake makes the Tails of this process read new entries immediately.
func (o *Outbox) Wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *Outbox) wakeup() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// List returns up to limit entries after a stamp, in order. The zero Stamp means from the
// start; limit 0 means DefaultLimit.
//
// It returns a *GapError if retention has removed entries after the stamp, and a
// *DivergedError if the database has lost the stamp, for example in a restore.
func (o *Outbox) List(ctx context.Context, after Stamp, limit int) ([]Entry, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	entries, _, err := o.list(ctx, after, limit)
	return entries, err
}

// list is List for a valid limit. It also returns the counter at the time of the read.
func (o *Outbox) list(ctx context.Context, after Stamp, limit int) ([]Entry, store.Clock, error) {
	var entries []Entry
	var now state
	err := o.read(ctx, func() []sqldb.Stmt {
		entries, now = nil, state{}
		list := o.store.ListEntries(after[:], limit, func(row store.Entry) error {
			entry, err := decodeEntry(row)
			entries = append(entries, entry)
			return err
		})
		return append(now.statements(o.store), list)
	})
	if err != nil {
		return nil, now.clock, fmt.Errorf("list outbox: %w", err)
	}
	if err := now.check(after); err != nil {
		return nil, now.clock, err
	}
	return entries, now.clock, nil
}

// Find returns the entry of a unit, or a *fault.NotFound. After a *fault.Uncertain, it
// shows whether the unit was committed.
func (o *Outbox) Find(ctx context.Context, unit string) (Entry, error) {
	var found Entry
	get := o.store.EntryByUnit(unit, func(row store.Entry) (err error) {
		found, err = decodeEntry(row)
		return err
	})
	get.Done = sqldb.One(&fault.NotFound{Kind: "outbox entry of unit", ID: unit})
	if err := o.read(ctx, func() []sqldb.Stmt { return []sqldb.Stmt{get} }); err != nil {
		return Entry{}, fmt.Errorf("find outbox entry: %w", err)
	}
	return found, nil
}

// Status is the state of the outbox at one point in time.
type Status struct {
	// Last is the stamp of the newest entry. It is zero if this incarnation has had no
	// entry.
	Last Stamp
	// PurgedThrough is the last stamp that retention has removed, or zero. It is the
	// oldest stamp from which List can start.
	PurgedThrough Stamp
	// Incarnations are the incarnations of the outbox after the first.
	Incarnations []Incarnation
}

// Status returns the state of the outbox.
func (o *Outbox) Status(ctx context.Context) (Status, error) {
	var now state
	err := o.read(ctx, func() []sqldb.Stmt {
		now = state{}
		return now.statements(o.store)
	})
	if err != nil {
		return Status{}, fmt.Errorf("read outbox status: %w", err)
	}
	return Status{Last: now.last(0), PurgedThrough: now.purged, Incarnations: now.incarnations}, nil
}

// read runs statements on one snapshot. It calls stmts again for each attempt, so that
// rows read before a connection broke are discarded.
func (o *Outbox) read(ctx context.Context, stmts func() []sqldb.Stmt) error {
	return o.transact(ctx, sqldb.Read, func(ctx context.Context, tx sqldb.Tx) error {
		return tx.Run(ctx, stmts()...)
	})
}

// write runs fn in a transaction and commits it.
func (o *Outbox) write(ctx context.Context, fn func(context.Context, sqldb.Tx) error) error {
	return o.transact(ctx, sqldb.Write, fn)
}

// maxTries is the maximum number of attempts of a transaction that fails with a lost
// connection or another transient error.
const maxTries = 5

// transact runs fn in a transaction, and runs it again from the start after a transient
// error.
func (o *Outbox) transact(ctx context.Context, access sqldb.Access, fn func(context.Context, sqldb.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for try := 1; ; try++ {
		err := o.once(ctx, access, fn)
		overtaken := sqldb.IsCertification(err) && o.host.Yield != nil
		if !sqldb.IsTransient(err) || try >= maxTries && !overtaken || ctx.Err() != nil {
			return sqldb.Bare(err)
		}
		if overtaken {
			o.host.Yield(ctx, try, err)
		}
	}
}

func (o *Outbox) once(ctx context.Context, access sqldb.Access, fn func(context.Context, sqldb.Tx) error) error {
	tx, err := o.begin(ctx, access)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// begin starts a transaction unless the engine is closed.
func (o *Outbox) begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	if o.stopped.Err() != nil {
		return nil, fault.ErrClosed
	}
	return o.store.DB().Begin(ctx, access)
}

func decodeEntry(row store.Entry) (Entry, error) {
	entry := Entry{Unit: row.Unit, Created: row.Created}
	if err := entry.Stamp.Scan(row.Stamp); err != nil {
		return entry, err
	}
	refs := RefMap{}
	if row.Refs != nil {
		if err := json.Unmarshal([]byte(*row.Refs), &refs); err != nil {
			return entry, fmt.Errorf("decode references of entry %s: %w", entry.Stamp, err)
		}
	}
	payload, err := Decode([]byte(row.Payload), refs)
	if err != nil {
		return entry, fmt.Errorf("decode payload of entry %s: %w", entry.Stamp, err)
	}
	entry.Payload = payload
	return entry, nil
}
