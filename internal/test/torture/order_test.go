package torture_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/outbox"
)

const writers = 56

func TestStampsAreDenseAndInCommitOrderUnderLoad(t *testing.T) {
	on(t, everything, func(t *testing.T, dsn string) {
		shop := torture.NewShop()
		engines := []*perdure.Engine{open(t, dsn, shop.Schema), open(t, dsn, shop.Schema), openPooled(t, dsn, shop.Schema)}
		history, seed := torture.NewHistory(), seedOf(t)
		reader := &torture.Reader{Outbox: engines[1].Outbox(), Seed: seed}
		reader.Start(t.Context())
		watcher := &torture.Watcher{Outbox: engines[0].Outbox(), Each: 150 * time.Millisecond}
		watcher.Start(t.Context())

		load := &torture.Load{
			Shop: shop, Engines: engines, Joins: joinsOf(t, dsn), Writers: writers,
			Units: times(1500), Duration: longer(8 * time.Second), Seed: seed, History: history,
			Enough: func() bool {
				return history.Count(torture.Acknowledged) >= 100 && history.Count(torture.Failed) >= 100
			},
		}
		load.Run(t.Context())

		found, snapshots, checks, err := watcher.Stop()
		if err != nil {
			t.Error(err)
		}
		none(t, "watcher", found)
		entries := tailed(t, engines[0].Outbox(), reader)
		none(t, "audit", torture.Audit(history.Records(), entries))
		report := verify(t, engines[0].Outbox())
		replayEquals(t, dsn, shop, entries)
		t.Logf("%d writers: %d units acknowledged, %d failed, %d unknown; %d entries, %d mutations, %d rows; %d snapshots, %d of them replayed; %d tails",
			writers, history.Count(torture.Acknowledged), history.Count(torture.Failed), history.Count(torture.Unknown),
			report.Entries, report.Mutations, report.Rows, snapshots, checks, reader.Streams())
		if history.Count(torture.Acknowledged) < 100 || history.Count(torture.Failed) < 100 {
			t.Error("the load was too small, or too uniform, to prove anything")
		}
		logStyles(t, history)
		for _, r := range history.Records() {
			if r.Outcome == torture.Failed && !expected(r) {
				t.Errorf("%s unit %s failed unexpectedly: %v", r.Style, r.Unit, r.Err)
			}
		}
	})
}

// expected says that a unit failed for a reason that the load gave it.
func expected(r torture.Record) bool {
	var (
		missing    *fault.NotFound
		duplicate  *fault.Duplicate
		restricted *fault.Restricted
		conflict   *fault.Conflict
	)
	switch {
	case errors.Is(r.Err, torture.ErrRolledBack), errors.Is(r.Err, context.Canceled),
		errors.As(r.Err, &missing), errors.As(r.Err, &duplicate), errors.As(r.Err, &restricted), errors.As(r.Err, &conflict):
		return true
	}
	// A joined unit is not run again by the engine.
	return strings.Contains(strings.ToLower(r.Err.Error()), "syntax") || r.Style == "joined" && sqldb.IsTransient(r.Err)
}

// tailed waits for the reader to see the last entry and returns all entries.
func tailed(t *testing.T, box *outbox.Outbox, reader *torture.Reader) []outbox.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	status, err := box.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := reader.Finish(ctx, status.Last)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func verify(t *testing.T, box *outbox.Outbox) outbox.Report {
	t.Helper()
	report, err := box.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range report.Problems {
		t.Errorf("verify: %s", problem)
	}
	return report
}

// replayEquals replays the entries into an empty database and compares all
// rows. That one is an SQLite whatever the original is: what the entries tell
// does not depend on the database.
func replayEquals(t *testing.T, dsn string, original *torture.Shop, entries []outbox.Entry) {
	t.Helper()
	shop, file := torture.NewShop(), "sqlite:"+t.TempDir()+"/replayed.db?synchronous=off"
	eng, err := perdure.Open(t.Context(), file, options(shop.Schema, false))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, e := range entries {
		if err := eng.Replay(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	want, got := dump(t, dsn, original), dump(t, file, shop)
	if len(want) == 0 {
		t.Error("the tables are empty: nothing was compared")
	}
	none(t, "replay", torture.Diff(want, got))
}

func dump(t *testing.T, dsn string, shop *torture.Shop) map[string]string {
	t.Helper()
	db, err := torture.OpenDB(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lines, err := torture.Dump(t.Context(), db, shop.Schema)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// joinsOf returns the ways to join the database at dsn.
func joinsOf(t *testing.T, dsn string) []torture.Join {
	t.Helper()
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=foreign_keys(1)&_pragma=synchronous(full)")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(2)
		t.Cleanup(func() { _ = db.Close() })
		return []torture.Join{joinSQL(db)}
	}
	db, err := testdb.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { _ = db.Close() })
	joins := []torture.Join{joinSQL(db)}
	if strings.HasPrefix(dsn, "postgres") {
		pool, err := pgxpool.New(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		joins = append(joins, joinPgx(pool))
	}
	return joins
}

// logStyles says how the units fared by the way in which they were written.
func logStyles(t *testing.T, h *torture.History) {
	t.Helper()
	type key struct {
		style   string
		outcome torture.Outcome
	}
	counts := map[key]int{}
	for _, r := range h.Records() {
		counts[key{r.Style, r.Outcome}]++
	}
	for _, style := range []string{"recorded", "read", "opened", "joined"} {
		acknowledged := counts[key{style, torture.Acknowledged}]
		t.Logf("%-8s %5d acknowledged, %5d failed", style, acknowledged, counts[key{style, torture.Failed}])
		if acknowledged == 0 {
			t.Errorf("no %s unit was acknowledged", style)
		}
	}
}
