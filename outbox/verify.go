package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/schema"
)

// VerifyOptions configure Verify. The zero value of every field is its default.
type VerifyOptions struct {
	// Watch is the time for which to watch for late entries while writers are running. At
	// least two snapshots are compared. Default: 0, do not watch.
	Watch time.Duration
}

// Report is the result of Verify. The outbox is consistent if Problems is empty.
type Report struct {
	// Entries, Mutations and Events are the numbers of entries, mutations and events that
	// were read and decoded.
	Entries   int
	Mutations int
	Events    int
	// Last is the newest stamp.
	Last Stamp
	// Rows is the number of rows of the application's tables that were compared with the
	// replay of the entries.
	Rows int
	// NotReplayed is the reason why the tables were not compared. It is empty if they
	// were compared.
	NotReplayed string
	// Snapshots is the number of snapshots that were checked.
	Snapshots int
	// Problems describe the violations. At most 100 are kept.
	Problems []string
}

const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Verify checks the outbox against itself and against the tables, on one snapshot. The
// counters of every incarnation must have no gaps. Every entry must be decodable and
// number its mutations and events from 0. The replay of all entries must give exactly the rows and
// versions of the tables. With Watch, Verify then checks further snapshots for entries
// with a stamp below a stamp that was already visible. A database sequence would allow
// such entries; Perdure does not.
//
// The error reports that reading failed. Problems of the outbox are in the Report.
func (o *Outbox) Verify(ctx context.Context, options *VerifyOptions) (Report, error) {
	var report Report
	tx, err := o.begin(ctx, sqldb.Read)
	if err != nil {
		return report, fmt.Errorf("verify outbox: %w", err)
	}
	defer tx.Rollback()
	if err := o.verify(ctx, tx, &report); err != nil {
		return report, fmt.Errorf("verify outbox: %w", err)
	}
	tx.Rollback()
	if options != nil && options.Watch > 0 {
		if err := o.watch(ctx, options.Watch, &report); err != nil {
			return report, fmt.Errorf("watch outbox: %w", err)
		}
	}
	return report, nil
}

func (o *Outbox) verify(ctx context.Context, tx sqldb.Tx, report *Report) error {
	var state state
	var recorded [][]byte
	schemas := o.store.Schemas(func(_, description string) error {
		recorded = append(recorded, []byte(description))
		return nil
	})
	if err := tx.Run(ctx, append(state.statements(o.store), schemas)...); err != nil {
		return err
	}
	described, err := schema.Parse(recorded...)
	if err != nil {
		return err
	}
	replayed := newReplica(described)
	if err := o.verifyEntries(ctx, tx, &state, replayed, report); err != nil {
		return err
	}
	report.Last = state.last(0)
	if !state.purged.IsZero() {
		report.NotReplayed = "entries up to " + state.purged.String() + " were removed by retention"
		return nil
	}
	builder := table.Builder{Dialect: o.store.DB().Dialect()}
	return replayed.compare(ctx, tx, builder, report)
}

// verifyEntries reads all entries in pages and checks each.
func (o *Outbox) verifyEntries(ctx context.Context, tx sqldb.Tx, state *state, replayed *replica, report *Report) error {
	density := density{state: state, last: state.purged, report: report}
	for after := state.purged; ; {
		n := 0
		page := o.store.ListEntries(after[:], MaxLimit, func(row store.Entry) error {
			n++
			_ = after.Scan(row.Stamp)
			density.next(after)
			report.Entries++
			entry, err := decodeEntry(row)
			if err != nil {
				report.problem("%v", err)
				return nil
			}
			report.verifyEntry(entry)
			if state.purged.IsZero() {
				replayed.apply(entry, report)
			}
			return nil
		})
		if err := tx.Run(ctx, page); err != nil {
			return err
		}
		if n < MaxLimit {
			density.end()
			return nil
		}
	}
}

func (r *Report) verifyEntry(entry Entry) {
	r.Mutations += len(entry.Payload.Mutations)
	r.Events += len(entry.Payload.Events)
	if entry.Payload.Len() == 0 {
		r.problem("entry %s has no mutations and no events", entry.Stamp)
	}
	want := entry.Stamp
	for m, e := range entry.Payload.All() {
		switch {
		case m != nil && m.Stamp != want:
			r.problem("mutation %d of entry %s has the stamp %s", want.User(), entry.Stamp, m.Stamp)
		case e != nil && e.Stamp != want:
			r.problem("event %d of entry %s has the stamp %s", want.User(), entry.Stamp, e.Stamp)
		}
		want = want.At(want.User() + 1)
	}
}

// density checks that the counters of each incarnation have no gaps, up to the current
// counter.
type density struct {
	state  *state
	last   Stamp
	report *Report
}

func (d *density) next(stamp Stamp) {
	if stamp.User() != 0 {
		d.report.problem("entry %s has a user version", stamp)
	}
	want := d.last.Counter() + 1
	if stamp.Incarnation() != d.last.Incarnation() {
		d.finish(int(stamp.Incarnation()))
		want = 1
	}
	if stamp.Counter() != want {
		d.report.problem("entry %s follows %s: %d is missing", stamp, d.last, want)
	}
	d.last = stamp
}

func (d *density) end() { d.finish(int(d.state.clock.Incarnation) + 1) }

// finish checks all incarnations from the incarnation of the last entry up to the
// incarnation to. Each must end with its last entry.
func (d *density) finish(to int) {
	counter := d.last.Counter()
	for i := int(d.last.Incarnation()); i < to; i++ {
		end := d.state.end(uint16(i))
		if int(end.Incarnation()) != i || end.Counter() != counter {
			d.report.problem("the last entry of incarnation %d is at %d, but its counter ended at %s", i, counter, end)
		}
		counter = 0 // the next incarnation has no entry
	}
}
