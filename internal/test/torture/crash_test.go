package torture_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/schema"
)

// writing are the arguments of a child that writes to a ledger.
type writing struct{ DSN, Journal string }

// writeLedger is the role of that child: write until killed.
func writeLedger(ctx context.Context, self *torture.Self) error {
	var args writing
	if err := self.Args(&args); err != nil {
		return err
	}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return err
	}
	ledger := torture.NewLedger()
	eng, err := openAnyWay(ctx, args.DSN, options(ledger.Schema, true))
	if err != nil {
		return err
	}
	if err := ledger.Write(ctx, eng, journal, 4, func(string) { self.Ready() }); err != nil {
		return err
	}
	return eng.Close()
}

// openAnyWay opens an engine, half of the time on a pool of the process.
func openAnyWay(ctx context.Context, dsn string, o *perdure.Options) (*perdure.Engine, error) {
	if rand.IntN(2) == 0 {
		return perdure.Open(ctx, dsn, o)
	}
	eng, _, err := torture.OpenPooled(ctx, dsn, o)
	return eng, err
}

func TestKilledWritersLoseNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backend
		kills int
	}{
		{onSQLite, 16},
		{backend{"Postgres", testdb.DurablePostgres}, 16},
		{backend{"MySQL", testdb.DurableMySQL}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := writing{DSN: c.open(t), Journal: filepath.Join(t.TempDir(), "journal")}
			loop := &torture.CrashLoop{
				Start:   func() (*torture.Child, error) { return torture.StartChild("writeLedger", args) },
				Kills:   times(c.kills),
				Seed:    seedOf(t),
				Longest: 120 * time.Millisecond,
			}
			if file, ok := strings.CutPrefix(args.DSN, "sqlite:"); ok {
				loop.After = func(ctx context.Context, _ int) error { return integrity(ctx, file) }
			}
			if err := loop.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			auditLedger(t, args)
		})
	}
}

// A writer that says "acknowledged" before it commits is what the loop and the
// audit are there to catch.
func TestTheCrashLoopCatchesAnAcknowledgementBeforeCommit(t *testing.T) {
	t.Parallel()
	args := writing{DSN: onSQLite.open(t), Journal: filepath.Join(t.TempDir(), "journal")}
	loop := &torture.CrashLoop{
		Start:   func() (*torture.Child, error) { return torture.StartChild("acknowledgeFirst", args) },
		Kills:   20,
		Seed:    seedOf(t),
		Longest: 50 * time.Millisecond,
	}
	if err := loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	known, err := torture.ReadJournal(args.Journal)
	if err != nil {
		t.Fatal(err)
	}
	found := findings(t, torture.NewLedger(), args.DSN, known)
	if !strings.Contains(strings.Join(found, "\n"), "was acknowledged and is lost") {
		t.Errorf("not caught: %v", found)
	}
}

// acknowledgeFirst is the role of that writer.
func acknowledgeFirst(ctx context.Context, self *torture.Self) error {
	var args writing
	if err := self.Args(&args); err != nil {
		return err
	}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return err
	}
	ledger := torture.NewLedger()
	eng, err := perdure.Open(ctx, args.DSN, options(ledger.Schema, true))
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			if _, err := tx.Create(ledger.Heads, schema.Values{"id": tx.ID(), "parts": 0}); err != nil {
				return err
			}
			return errors.Join(journal.Intend(tx.ID()), journal.Acknowledge(tx.ID()))
		})
		if err != nil {
			return err
		}
		self.Ready()
	}
	return nil
}

// findings audits the ledger at dsn.
func findings(t *testing.T, ledger *torture.Ledger, dsn string, known map[string]torture.Outcome) torture.Findings {
	t.Helper()
	db, err := torture.OpenDB(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := ledger.Audit(t.Context(), db, known)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// integrity opens the file, which recovers it, and has SQLite check it.
func integrity(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return err
	}
	defer db.Close()
	var result string
	if err := db.QueryRowContext(ctx, "pragma integrity_check").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("integrity check: %s", result)
	}
	return nil
}

// auditLedger compares a journal with its database.
func auditLedger(t *testing.T, args writing) {
	t.Helper()
	known, err := torture.ReadJournal(args.Journal)
	if err != nil {
		t.Fatal(err)
	}
	ledger := torture.NewLedger()
	report := verify(t, open(t, args.DSN, ledger.Schema).Outbox())
	none(t, "ledger", findings(t, ledger, args.DSN, known))
	counts := map[torture.Outcome]int{}
	for _, o := range known {
		counts[o]++
	}
	t.Logf("%d units acknowledged, %d unknown, %d refused; %d entries, %d rows",
		counts[torture.Acknowledged], counts[torture.Unknown], counts[torture.Failed], report.Entries, report.Rows)
	if counts[torture.Acknowledged] == 0 {
		t.Error("no unit was acknowledged: nothing was proven")
	}
}

func TestAKilledServerLosesNothingAndWritersReconnect(t *testing.T) {
	t.Parallel()
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		killServer(t, testdb.PrivatePostgres(t), times(5))
	})
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		killServer(t, testdb.PrivateMySQL(t), times(2))
	})
}

// killServer kills a server under its writers, over and over.
func killServer(t *testing.T, server *testdb.Server, kills int) {
	t.Helper()
	args := writing{DSN: server.Database(t), Journal: filepath.Join(t.TempDir(), "journal")}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	ledger := torture.NewLedger()
	eng := open(t, args.DSN, ledger.Schema)

	ctx, cancel := context.WithCancel(t.Context())
	var acknowledged atomic.Int64
	progress := make(chan struct{}, 1)
	var group sync.WaitGroup
	group.Go(func() {
		err := ledger.Write(ctx, eng, journal, 8, func(string) {
			acknowledged.Add(1)
			select {
			case progress <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	for range kills {
		awaitUnits(t, &acknowledged, progress, 100)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	awaitUnits(t, &acknowledged, progress, 100)
	cancel()
	group.Wait()
	auditLedger(t, args)
}

// awaitUnits waits until so many more units are acknowledged: the writers are
// at work, again.
func awaitUnits(t *testing.T, acknowledged *atomic.Int64, progress <-chan struct{}, n int64) {
	t.Helper()
	timeout := time.After(testdb.Patience)
	for want := acknowledged.Load() + n; acknowledged.Load() < want; {
		select {
		case <-progress:
		case <-timeout:
			t.Fatalf("the writers stopped at %d units", acknowledged.Load())
		}
	}
}
