package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

// Ledger is the schema and the workload of writers that are killed. Each unit is one row in
// heads under the unit's own id, with the number of its rows in parts. So an audit can
// distinguish a whole unit from a partial one without the outbox.
type Ledger struct {
	Schema       *schema.Schema
	Heads, Parts *schema.Table
}

// NewLedger returns a new description of the ledger. Extra columns are added to its heads,
// as the next release of an application would.
func NewLedger(extra ...schema.Column) *Ledger {
	columns := []schema.Column{
		schema.Int("parts"),
		schema.String("successor").Optional(), // the unit that this writer wrote next
	}
	l := &Ledger{Heads: schema.NewTable("heads", append(columns, extra...)...)}
	l.Parts = schema.NewTable("parts", schema.Ref("head", l.Heads), schema.Int("n"), schema.Text("filler"))
	l.Schema = schema.New("ledger", l.Heads, l.Parts)
	return l
}

// Write writes units from several goroutines until ctx is done. The journal records the
// intent and the outcome of each. acknowledged is called after each acknowledgement is in
// the journal. An unavailable database is not an error: the writers continue until it is
// back.
func (l *Ledger) Write(ctx context.Context, eng *perdure.Engine, journal *Journal, writers int, acknowledged func(unit string)) error {
	errs := make([]error, writers)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			w := &ledgerWriter{Ledger: l, eng: eng, journal: journal}
			for ctx.Err() == nil && errs[i] == nil {
				errs[i] = w.unit(ctx, acknowledged)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

type ledgerWriter struct {
	*Ledger
	eng      *perdure.Engine
	journal  *Journal
	previous string // the last unit that was acknowledged
}

// unit writes one unit. Its error is the journal's: an error of the database is an outcome.
func (w *ledgerWriter) unit(ctx context.Context, acknowledged func(unit string)) error {
	var id string
	var journal error
	err := w.eng.Update(context.WithoutCancel(ctx), func(tx *perdure.Tx) error {
		if id == "" { // a second run has the same id
			if journal = w.journal.Intend(tx.ID()); journal != nil {
				return journal
			}
			id = tx.ID()
		}
		return w.write(tx)
	})
	if journal != nil || id == "" {
		return journal
	}
	switch outcomeOf(err) {
	case Acknowledged:
		w.previous = id
		if err := w.journal.Acknowledge(id); err != nil {
			return err
		}
		acknowledged(id)
	case Failed:
		return w.journal.Refuse(id)
	case Unknown: // the intent is all that is known
	}
	return nil
}

// write records the mutations of a unit. Some units start with a read, and some use the
// transaction through database/sql, so that kills interrupt all ways of committing.
func (w *ledgerWriter) write(tx *perdure.Tx) error {
	parts := 2 + rand.IntN(4)
	head, err := tx.Create(w.Heads, schema.Values{"id": tx.ID(), "parts": parts})
	if err != nil {
		return err
	}
	switch rand.IntN(4) {
	case 0:
		_, err = tx.Get(w.Heads, head)
	case 1:
		err = useNative(tx, w.Heads, schema.Values{"id": tx.ID() + "-undone", "parts": 1})
	}
	if err != nil {
		return err
	}
	for n := range parts {
		filler := strings.Repeat("x", rand.IntN(2000))
		if _, err := tx.Create(w.Parts, schema.Values{"head": head, "n": n, "filler": filler}); err != nil {
			return err
		}
	}
	if w.previous != "" {
		return tx.Update(w.Heads, w.previous, schema.Values{"successor": tx.ID()})
	}
	return nil
}

// Audit compares the journal with the database, only by SQL. Every acknowledged unit exists
// completely with its one entry. No refused unit exists. Every unknown unit exists
// completely or not at all. There is nothing else.
func (l *Ledger) Audit(ctx context.Context, db sqldb.DB, known map[string]Outcome) (Findings, error) {
	state, err := l.read(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("audit ledger: %w", err)
	}
	var f Findings
	for unit, outcome := range known {
		there := state.entries[unit] > 0
		if outcome == Acknowledged && !there {
			f.add("C5", "unit %s was acknowledged and is lost", unit)
		}
		if outcome == Failed && there {
			f.add("C5", "unit %s failed and has an entry", unit)
		}
	}
	for unit, n := range state.entries {
		if _, intended := known[unit]; !intended {
			f.add("C5", "entry of unit %s, which no process intended", unit)
		}
		if n != 1 {
			f.add("C5", "unit %s has %d entries", unit, n)
		}
		if want, ok := state.heads[unit]; !ok || state.parts[unit] != want {
			f.add("C5", "unit %s has an entry and %d of %d parts (head: %t)", unit, state.parts[unit], want, ok)
		}
	}
	for unit := range state.heads {
		if state.entries[unit] == 0 {
			f.add("C5", "unit %s has rows and no entry", unit)
		}
	}
	return f, nil
}

// ledgerState is the content of the database, by unit.
type ledgerState struct {
	entries map[string]int
	heads   map[string]int64 // the expected number of parts
	parts   map[string]int64 // the actual number of parts
}

// read reads one snapshot.
func (l *Ledger) read(ctx context.Context, db sqldb.DB) (*ledgerState, error) {
	tx, err := db.Begin(ctx, sqldb.Read)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	s := &ledgerState{entries: map[string]int{}, heads: map[string]int64{}, parts: map[string]int64{}}
	external := map[int64]string{}
	heads, err := readTable(ctx, tx, db.Dialect(), l.Heads)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		external[h.Internal()] = h.ID
		s.heads[h.ID] = h.Int("parts")
	}
	parts, err := readTable(ctx, tx, db.Dialect(), l.Parts)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		s.parts[external[p.Ref("head").Internal()]]++
	}
	units := sqldb.Stmt{SQL: "select unit_id from " + outboxTable(db.Dialect()), Row: func(scan sqldb.Scan) error {
		var unit string
		err := scan(&unit)
		s.entries[unit]++
		return err
	}}
	return s, tx.Run(ctx, units)
}

func outboxTable(d sqldb.Dialect) string { return d.Qualify("perdure", "outbox") }
