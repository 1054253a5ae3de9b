// Package unit commits units of work: lists of statements that commit together, with the
// outbox entry that records them.
//
// A unit is a list of statements, so units of many callers can share one transaction, one
// reservation of outbox numbers and one sync to disk. See Committer.
package unit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/outbox"
)

// MaxMutations is the maximum number of mutations and events of one unit. They are numbered
// by the last two bytes of a versionstamp.
const MaxMutations = outbox.MaxMutations

// maxPayload is the maximum size of one outbox entry in bytes. It is below the limits of
// all databases.
const maxPayload = 32 << 20

// Unit is the recorded work of one transaction.
type Unit struct {
	// ID is the unit's idempotency key. It is the same for every run of the unit.
	ID string
	// Stmts are the statements in the order in which they were recorded.
	Stmts []sqldb.Stmt
	// Mutations describe the statements in the outbox. Events are those of the application.
	// The user versions of both are their order: see Describe and Emit.
	Mutations []outbox.Mutation
	Events    []outbox.Event
	// Refs are the external ids of the placeholders of the mutations. Statements in Stmts
	// set them when they run.
	Refs outbox.RefMap
	// Acts are the operations that operators or API tokens perform with the unit. The
	// transaction that commits it appends their entries to the audit log.
	Acts []*audit.Act

	draft *draft // the draft of the outbox entry, once it is prepared
}

// Clean reports whether there is nothing to commit.
func (u *Unit) Clean() bool { return len(u.Stmts) == 0 && len(u.Events) == 0 }

// Recorded returns the number of mutations and events.
func (u *Unit) Recorded() int { return len(u.Mutations) + len(u.Events) }

// Describe adds a mutation after everything that was recorded.
func (u *Unit) Describe(m outbox.Mutation) {
	m.Stamp = u.place()
	u.Mutations = append(u.Mutations, m)
}

// Emit adds an event after everything that was recorded.
func (u *Unit) Emit(e outbox.Event) {
	e.Stamp = u.place()
	u.Events = append(u.Events, e)
}

// place returns the stamp of the next mutation or event. Only its user version is set.
func (u *Unit) place() outbox.Stamp { return outbox.NewStamp(0, 0, uint16(u.Recorded())) }

// Writer applies units inside a transaction and adds their outbox entries.
type Writer struct {
	Store *store.Store
	// Outbox is true if entries are written.
	Outbox bool
	// Now returns the creation time of the entries.
	Now func() time.Time
}

// Apply runs the statements of the units in order. It returns the statements that must be
// sent with COMMIT: they insert the entries of the audit log and of the outbox. The
// reservation of their numbers is the last lock that the transaction takes. It is in the
// returned statements if the database supports that, otherwise at the end of Apply.
//
// An error that belongs to one unit is a *UnitError.
func (w Writer) Apply(ctx context.Context, run sqldb.Runner, units []*Unit, how How) ([]sqldb.Stmt, error) {
	emitting := w.emitting(units)
	for _, place := range emitting {
		if err := units[place].prepare(); err != nil {
			return nil, &UnitError{Unit: place, Err: err}
		}
	}
	stmts, owner := gather(units)
	first := limit(how.Rows)
	reserve := len(emitting) > 0
	later := how.Arrays && w.Store.CanAppend()
	var clock store.Clock
	acts := w.acts(units)
	var head audit.Head
	var rest []sqldb.Stmt
	if reserve && !later {
		rest = append(limit(how.Counter), w.Store.Reserve(len(emitting), &clock)...)
		if how.Joined {
			rest = append(w.Store.GuardCounter(), rest...)
		}
	}
	if len(acts) > 0 {
		rest = append(rest, w.Store.ClaimAuditChain(func(h audit.Head) { head = h }))
	}
	if err := run.Run(ctx, slices.Concat(first, stmts, rest)...); err != nil {
		return nil, attribute(err, len(first), stmts, owner)
	}
	last, err := w.recording(ctx, run, acts, head)
	if err != nil || !reserve {
		return last, err
	}
	var entries []sqldb.Stmt
	if later {
		entries, err = w.appending(units, emitting)
		entries = append(limit(how.Counter), entries...)
	} else {
		entries, err = w.inserting(units, emitting, clock)
	}
	return append(last, entries...), err
}

// How describes the transaction of Apply.
type How struct {
	// Arrays is true if the transaction accepts array values.
	Arrays bool
	// Joined is true if the transaction belongs to a caller, who commits it later.
	Joined bool
	// Rows bounds each wait for a row of a unit, Counter the wait for the outbox counter. 0
	// means no limit.
	Rows, Counter time.Duration
}

func limit(wait time.Duration) []sqldb.Stmt {
	if wait <= 0 {
		return nil
	}
	return []sqldb.Stmt{sqldb.LimitLocks(wait)}
}

// gather joins the statements of the units. owner has the index of the unit of each
// statement.
func gather(units []*Unit) (stmts []sqldb.Stmt, owner []int) {
	for i, u := range units {
		stmts = append(stmts, u.Stmts...)
		for range u.Stmts {
			owner = append(owner, i)
		}
	}
	return stmts, owner
}

// emitting returns the indexes of the units that have an outbox entry.
func (w Writer) emitting(units []*Unit) []int {
	var places []int
	for i, u := range units {
		if w.emits(u) {
			places = append(places, i)
		}
	}
	return places
}

func (w Writer) emits(u *Unit) bool { return w.Outbox && u.Recorded() > 0 }

// appending returns the statement that reserves the numbers and inserts the entries.
func (w Writer) appending(units []*Unit, emitting []int) ([]sqldb.Stmt, error) {
	drafts := make([]store.Draft, len(emitting))
	for i, place := range emitting {
		u := units[place]
		refs, err := u.refs()
		if err != nil {
			return nil, &UnitError{Unit: place, Err: err}
		}
		drafts[i] = store.Draft{Unit: u.ID, Payload: u.draft.payload, Nonce: u.draft.nonce, Refs: refs}
	}
	return []sqldb.Stmt{w.Store.Append(drafts, w.now())}, nil
}

// inserting returns the statements that insert the entries with the reserved numbers. The
// last of them is the counter of clock.
func (w Writer) inserting(units []*Unit, emitting []int, clock store.Clock) ([]sqldb.Stmt, error) {
	first := clock.Counter - uint64(len(emitting)) + 1
	entries := make([]store.Entry, len(emitting))
	now := w.now()
	for i, place := range emitting {
		u := units[place]
		refs, err := u.refs()
		if err != nil {
			return nil, &UnitError{Unit: place, Err: err}
		}
		stamp := outbox.NewStamp(clock.Incarnation, first+uint64(i), 0)
		entries[i] = store.Entry{Stamp: stamp[:], Unit: u.ID, Payload: u.draft.at(stamp), Refs: refs, Created: now}
	}
	return w.Store.InsertEntries(entries), nil
}

func (w Writer) now() time.Time { return w.Now().UTC().Truncate(time.Microsecond) }

// refs returns the unit's references in the form in which the entry stores them, or nil
// if there are none.
func (u *Unit) refs() (*string, error) {
	if len(u.Refs) == 0 {
		return nil, nil
	}
	refs, err := json.Marshal(u.Refs)
	if err != nil {
		return nil, fmt.Errorf("encode outbox references: %w", err)
	}
	return new(string(refs)), nil
}

// UnitError is an error that belongs to one unit of a group.
type UnitError struct {
	// Unit is the unit's index in the group.
	Unit int
	// Row names the row for which the failed statement may have waited. Empty: not known.
	Row string
	Err error

	job *job // the unit in the committer
}

func (e *UnitError) Error() string { return e.Err.Error() }

// Unwrap returns the unit's own error.
func (e *UnitError) Unwrap() error { return e.Err }

// attribute returns a *UnitError for the unit whose statement failed. An error of a
// reservation does not belong to a unit. before is the number of statements before those of
// the units.
func attribute(err error, before int, stmts []sqldb.Stmt, owner []int) error {
	var failed *sqldb.StmtError
	if !errors.As(err, &failed) || failed.Index < before || failed.Index-before >= len(owner) {
		return err
	}
	i := failed.Index - before
	return &UnitError{Unit: owner[i], Row: rowOf(stmts[i]), Err: failed.Err}
}

// rowOf names the row for which a statement may wait. Most statements of Perdure's own
// tables have the id of the row as their first value.
func rowOf(s sqldb.Stmt) string {
	if s.Locks != "" || len(s.Args) == 0 {
		return s.Locks
	}
	if id, ok := s.Args[0].(string); ok {
		return s.SQL + " " + id
	}
	return ""
}
