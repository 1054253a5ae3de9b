package torture_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/schema"
)

// migrators is how many processes start at once.
const migrators = 8

// migrating are the arguments of a child that opens a database, and by that
// migrates it, and then writes a few units.
type migrating struct {
	writing
	Extended bool
	Units    int
}

// ledgerOf describes the ledger of the old release, or that of the next one.
func ledgerOf(extended bool) *torture.Ledger {
	if extended {
		return torture.NewLedger(schema.String("region").Default("none"))
	}
	return torture.NewLedger()
}

// migrateAndWrite is the role of that child.
func migrateAndWrite(ctx context.Context, self *torture.Self) error {
	var args migrating
	if err := self.Args(&args); err != nil {
		return err
	}
	ledger := ledgerOf(args.Extended)
	eng, err := perdure.Open(ctx, args.DSN, options(ledger.Schema, true))
	if err != nil {
		return err
	}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := args.Units
	err = ledger.Write(ctx, eng, journal, 1, func(string) {
		if left--; left == 0 {
			cancel()
		}
	})
	return errors.Join(err, journal.Close(), eng.Close())
}

func TestManyProcessesMigrateAnEmptyDatabaseAtOnce(t *testing.T) {
	on(t, everything, func(t *testing.T, dsn string) {
		journals := startMigrators(t, dsn, false)
		auditAll(t, dsn, ledgerOf(false), journals)
	})
}

func TestManyProcessesMigrateUnderLoad(t *testing.T) {
	on(t, everything, func(t *testing.T, dsn string) {
		ledger, path := ledgerOf(false), filepath.Join(t.TempDir(), "load")
		eng := open(t, dsn, ledger.Schema)
		journal, err := torture.OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
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
		awaitUnits(t, &acknowledged, progress, 20)
		before := acknowledged.Load()
		journals := startMigrators(t, dsn, true)
		during := acknowledged.Load() - before
		awaitUnits(t, &acknowledged, progress, 20) // the old release still writes
		cancel()
		group.Wait()
		t.Logf("%d units were acknowledged during the migration", during)
		auditAll(t, dsn, ledgerOf(true), append(journals, path))
	})
}

// startMigrators runs the children to their ends and returns their journals.
func startMigrators(t *testing.T, dsn string, extended bool) []string {
	t.Helper()
	var children []*torture.Child
	var journals []string
	for i := range migrators {
		journals = append(journals, filepath.Join(t.TempDir(), fmt.Sprintf("journal%d", i)))
		child, err := torture.StartChild("migrateAndWrite", migrating{
			writing: writing{DSN: dsn, Journal: journals[i]}, Extended: extended, Units: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
	}
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	return journals
}

// auditAll compares the journals of several processes with their database, in
// which none of their units may have failed.
func auditAll(t *testing.T, dsn string, ledger *torture.Ledger, journals []string) {
	t.Helper()
	known := map[string]torture.Outcome{}
	for _, path := range journals {
		some, err := torture.ReadJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(known, some)
	}
	for unit, outcome := range known {
		if outcome != torture.Acknowledged {
			t.Errorf("unit %s was not acknowledged: %v", unit, outcome)
		}
	}
	report := verify(t, open(t, dsn, ledger.Schema).Outbox())
	none(t, "ledger", findings(t, ledger, dsn, known))
	t.Logf("%d units, %d entries, %d rows", len(known), report.Entries, report.Rows)
}
