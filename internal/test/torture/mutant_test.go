package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// mutant is a way to write units that is wrong in one point. A checker that
// has never failed proves nothing: each of these must be caught.
type mutant struct {
	name string
	// first draws the number as the transaction's first act; last draws it as
	// the last one, if first is nil.
	first, last func(ctx context.Context, r *rawWriter, tx sqldb.Tx) (uint64, error)
	// withoutRow and withoutEntry leave half of the unit out.
	withoutRow, withoutEntry bool
	// acknowledgeFirst says "committed" before it is so.
	acknowledgeFirst bool
	// neverFails leaves rollbacks out, so that only the order is wrong.
	neverFails bool
	// finding is part of what the checker must say, by which of its rules the
	// mutant is caught.
	finding string
}

var rightWay = mutant{name: "ReservedLast", last: reserve}

var mutants = []mutant{
	{name: "SequenceAtTheStart", first: fromSequence, finding: "C1"},
	{name: "SequenceAtTheStartWithoutRollbacks", first: fromSequence, neverFails: true, finding: "arrived after"},
	{name: "ProcessCounterAtTheStart", first: fromProcess, finding: "C1"},
	{name: "ReservedInATransactionOfItsOwn", first: reserveApart, finding: "C1"},
	{name: "ReservedInASavepointThatIsRolledBack", last: reserveInSavepoint, finding: "its counter ended at"},
	{name: "AcknowledgedBeforeCommit", last: reserve, acknowledgeFirst: true, finding: "was acknowledged and has 0 entries"},
	{name: "EntryWithoutUnit", last: reserve, withoutRow: true, finding: "in the outbox but not in the table"},
	{name: "UnitWithoutEntry", last: reserve, withoutEntry: true, finding: "was acknowledged and has 0 entries"},
}

func TestTheCheckerCatchesEveryMutant(t *testing.T) {
	on(t, servers, func(t *testing.T, dsn string) {
		for _, m := range mutants {
			t.Run(m.name, func(t *testing.T) {
				r := newRawWriter(t, dsn, m)
				start := time.Now()
				found := r.runUntilCaught(t, 15*time.Second, m.finding)
				if !strings.Contains(strings.Join(found, "\n"), m.finding) {
					t.Fatalf("not caught, want a finding with %q: %v", m.finding, found)
				}
				t.Logf("caught after %s, %d units: %s", time.Since(start).Round(time.Millisecond), len(r.history.Records()), found[0])
			})
		}
		t.Run(rightWay.name, func(t *testing.T) {
			r := newRawWriter(t, dsn, rightWay)
			none(t, "the right way", r.runUntilCaught(t, longer(1500*time.Millisecond), ""))
			t.Logf("clean, %d units", len(r.history.Records()))
		})
	})
}

// rawWriter writes units by SQL of its own, without the engine, in the way of
// a mutant.
type rawWriter struct {
	mutant
	db      sqldb.DB
	store   *store.Store
	box     *outbox.Outbox
	shop    *torture.Shop
	history *torture.History
	counter atomic.Uint64
	late    sync.WaitGroup // commits that come after their acknowledgement
}

// newRawWriter empties the database, so that mutants share one.
func newRawWriter(t *testing.T, dsn string, m mutant) *rawWriter {
	t.Helper()
	r := &rawWriter{mutant: m, shop: torture.NewShop(), history: torture.NewHistory()}
	open(t, dsn, r.shop.Schema) // creates the tables
	var err error
	if r.db, err = torture.OpenDB(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.db.Close() })
	if r.store, err = store.New(r.db); err != nil {
		t.Fatal(err)
	}
	r.box = outbox.New(r.store, outbox.Host{Clock: clock.System})
	if err := r.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rawWriter) reset(ctx context.Context) error {
	return r.db.Exclusively(ctx, func(run sqldb.Runner) error {
		accounts := table.Builder{Dialect: r.db.Dialect()}.Name(r.shop.Accounts)
		return run.Run(ctx,
			sqldb.Exec("delete from "+accounts),
			sqldb.Exec(r.local("delete from perdure.outbox")),
			sqldb.Exec(r.local("update perdure.outbox_clock set counter = 0")),
			sqldb.Exec("drop table if exists mutant_numbers"),
			sqldb.Exec(r.numbers()),
		)
	})
}

// local names Perdure's own tables as the database does.
func (r *rawWriter) local(query string) string {
	if r.db.Dialect().Name == sqldb.Postgres {
		return query
	}
	return strings.ReplaceAll(query, "perdure.", "perdure_")
}

// numbers is a table that counts by itself: with a sequence on PostgreSQL, by
// AUTO_INCREMENT on MariaDB.
func (r *rawWriter) numbers() string {
	if r.db.Dialect().Name == sqldb.Postgres {
		return "create table mutant_numbers (n bigserial primary key)"
	}
	return "create table mutant_numbers (n bigint auto_increment primary key)"
}

// runUntilCaught writes with the checker looking on, until it says what it
// should or the time is over, and returns its findings.
func (r *rawWriter) runUntilCaught(t *testing.T, limit time.Duration, finding string) torture.Findings {
	t.Helper()
	watcher := &torture.Watcher{Outbox: r.box, Each: 100 * time.Millisecond}
	watcher.Start(t.Context())
	defer func() { _, _, _, _ = watcher.Stop() }()
	for end := time.Now().Add(limit); ; {
		r.round(t.Context())
		entries, err := r.entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := append(watcher.Found(), torture.Audit(r.history.Records(), entries)...)
		caught := finding != "" && strings.Contains(strings.Join(found, "\n"), finding)
		if caught || time.Now().After(end) {
			return found
		}
	}
}

// round has 8 writers write 10 units each.
func (r *rawWriter) round(ctx context.Context) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				r.history.Do(func(record *torture.Record) error { return r.write(ctx, record) })
			}
		})
	}
	group.Wait()
	r.late.Wait()
}

func (r *rawWriter) write(ctx context.Context, record *torture.Record) error {
	record.Unit, record.Mutations = uuid.NewString(), 1
	tx, err := r.db.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, tx, record.Unit); err != nil {
		tx.Rollback()
		return err
	}
	rollback := rand.IntN(100) < 20 && !r.neverFails
	if r.acknowledgeFirst {
		r.late.Go(func() { _ = end(ctx, tx, rollback) })
		return nil
	}
	return end(ctx, tx, rollback)
}

// end commits after a random delay, or rolls back.
func end(ctx context.Context, tx sqldb.Tx, rollback bool) error {
	<-time.After(rand.N(3 * time.Millisecond))
	if rollback {
		tx.Rollback()
		return torture.ErrRolledBack
	}
	return tx.Commit(ctx)
}

// apply writes the row and the entry of a unit.
func (r *rawWriter) apply(ctx context.Context, tx sqldb.Tx, unit string) (err error) {
	var number uint64
	if r.first != nil {
		if number, err = r.first(ctx, r, tx); err != nil {
			return err
		}
	}
	values := schema.Values{"name": "raw", "email": nil, "balance": int64(1), "note": nil}
	if !r.withoutRow {
		create, err := table.Builder{Dialect: r.db.Dialect()}.Create(r.shop.Accounts, unit, values)
		if err != nil {
			return err
		}
		if err := tx.Run(ctx, create...); err != nil {
			return err
		}
	}
	if r.first == nil {
		if number, err = r.last(ctx, r, tx); err != nil {
			return err
		}
	}
	if r.withoutEntry {
		return nil
	}
	entry, err := entryOf(unit, number, values)
	if err != nil {
		return err
	}
	return tx.Run(ctx, r.store.InsertEntries([]store.Entry{entry})...)
}

func entryOf(unit string, number uint64, values schema.Values) (store.Entry, error) {
	stamp := outbox.NewStamp(0, number, 0)
	payload, err := outbox.Encode(outbox.Payload{Version: outbox.PayloadVersion, Mutations: []outbox.Mutation{{
		Op: outbox.Create, Schema: "shop", Namespace: "shop", Table: "accounts", ExternalID: unit, Stamp: stamp, Values: values,
	}}})
	return store.Entry{Stamp: stamp[:], Unit: unit, Payload: string(payload), Created: time.Now().UTC()}, err
}

// entries reads the outbox past the engine, which would refuse to serve some
// of what mutants leave.
func (r *rawWriter) entries(ctx context.Context) ([]outbox.Entry, error) {
	var all []outbox.Entry
	tx, err := r.db.Begin(ctx, sqldb.Read)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	none := outbox.Stamp{}
	err = tx.Run(ctx, r.store.ListEntries(none[:], 1<<30, func(row store.Entry) error {
		entry := outbox.Entry{Unit: row.Unit}
		if err := entry.Stamp.Scan(row.Stamp); err != nil {
			return err
		}
		entry.Payload, err = outbox.Decode([]byte(row.Payload), nil)
		all = append(all, entry)
		return err
	}))
	return all, err
}

// reserve is what Perdure does.
func reserve(ctx context.Context, r *rawWriter, tx sqldb.Tx) (uint64, error) {
	var now store.Clock
	err := tx.Run(ctx, r.store.Reserve(1, &now)...)
	return now.Counter, err
}

// reserveInSavepoint gives the number back and uses it all the same.
func reserveInSavepoint(ctx context.Context, r *rawWriter, tx sqldb.Tx) (uint64, error) {
	if err := tx.Run(ctx, sqldb.Exec("savepoint s")); err != nil {
		return 0, err
	}
	number, err := reserve(ctx, r, tx)
	if err != nil {
		return 0, err
	}
	return number, tx.Run(ctx, sqldb.Exec("rollback to savepoint s"))
}

// reserveApart holds the counter's lock for the reservation only.
func reserveApart(ctx context.Context, r *rawWriter, _ sqldb.Tx) (uint64, error) {
	tx, err := r.db.Begin(ctx, sqldb.Write)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	number, err := reserve(ctx, r, tx)
	if err != nil {
		return 0, err
	}
	return number, tx.Commit(ctx)
}

// fromSequence draws from what the database counts outside transactions.
func fromSequence(ctx context.Context, r *rawWriter, tx sqldb.Tx) (uint64, error) {
	var number int64
	scan := func(scan sqldb.Scan) error { return scan(&number) }
	draw := []sqldb.Stmt{{SQL: "select nextval('mutant_numbers_n_seq')", Row: scan}}
	if r.db.Dialect().Name == sqldb.MySQL {
		draw = []sqldb.Stmt{sqldb.Exec("insert into mutant_numbers values ()"), {SQL: "select last_insert_id()", Row: scan}}
	}
	err := tx.Run(ctx, draw...)
	return uint64(number), err
}

func fromProcess(_ context.Context, r *rawWriter, _ sqldb.Tx) (uint64, error) {
	return r.counter.Add(1), nil
}

func TestTheCheckerSeesALateArrival(t *testing.T) {
	t.Parallel()
	stamp := func(n uint64) outbox.Stamp { return outbox.NewStamp(0, n, 0) }
	for name, c := range map[string]struct {
		snapshots [][]outbox.Stamp
		problems  int
	}{
		"InOrder":          {[][]outbox.Stamp{{stamp(1)}, {stamp(1), stamp(2), stamp(3)}}, 0},
		"Gap":              {[][]outbox.Stamp{{stamp(1), stamp(3)}}, 1},
		"GapThatIsFilled":  {[][]outbox.Stamp{{stamp(1), stamp(3)}, {stamp(1), stamp(2), stamp(3)}}, 2},
		"Twice":            {[][]outbox.Stamp{{stamp(1), stamp(1)}}, 1},
		"NewIncarnation":   {[][]outbox.Stamp{{stamp(1), outbox.NewStamp(1, 1, 0)}}, 0},
		"NothingToBeginOn": {[][]outbox.Stamp{{}, {stamp(1)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var report outbox.Report
			checker := outbox.NewChecker(&report)
			for _, s := range c.snapshots {
				checker.Observe(outbox.Stamp{}, s)
			}
			if len(report.Problems) != c.problems {
				t.Errorf("%d problems, want %d: %v", len(report.Problems), c.problems, report.Problems)
			}
		})
	}
}

func TestTheAuditSeesEachBrokenRule(t *testing.T) {
	t.Parallel()
	entry := func(unit string, n uint64) outbox.Entry {
		stamp := outbox.NewStamp(0, n, 0)
		return outbox.Entry{Stamp: stamp, Unit: unit, Payload: outbox.Payload{Mutations: []outbox.Mutation{{Stamp: stamp}}}}
	}
	record := func(unit string, began, ended time.Duration, o torture.Outcome) torture.Record {
		return torture.Record{Unit: unit, Began: began, Ended: ended, Outcome: o, Mutations: 1}
	}
	a, b := record("a", 0, 1, torture.Acknowledged), record("b", 2, 3, torture.Acknowledged)
	for name, c := range map[string]struct {
		records []torture.Record
		entries []outbox.Entry
		rule    string
	}{
		"Clean":       {[]torture.Record{a, b}, []outbox.Entry{entry("a", 1), entry("b", 2)}, ""},
		"Gap":         {[]torture.Record{a, b}, []outbox.Entry{entry("a", 1), entry("b", 3)}, "C1"},
		"Reversed":    {[]torture.Record{a, b}, []outbox.Entry{entry("b", 1), entry("a", 2)}, "C4"},
		"Lost":        {[]torture.Record{a, b}, []outbox.Entry{entry("a", 1)}, "C5"},
		"Ghost":       {[]torture.Record{a}, []outbox.Entry{entry("a", 1), entry("b", 2)}, "C5"},
		"FailedThere": {[]torture.Record{record("a", 0, 1, torture.Failed)}, []outbox.Entry{entry("a", 1)}, "C5"},
		"UnknownFree": {[]torture.Record{record("a", 0, 1, torture.Unknown)}, nil, ""},
		"Misnumbered": {[]torture.Record{a}, []outbox.Entry{{Stamp: outbox.NewStamp(0, 1, 0), Unit: "a", Payload: outbox.Payload{Mutations: make([]outbox.Mutation, 1)}}}, "C7"},
	} {
		t.Run(name, func(t *testing.T) {
			found := torture.Audit(c.records, c.entries)
			if c.rule == "" && len(found) > 0 || c.rule != "" && !strings.HasPrefix(fmt.Sprint(append(found, "none")[0]), c.rule) {
				t.Errorf("found %v, want %q", found, c.rule)
			}
		})
	}
}
