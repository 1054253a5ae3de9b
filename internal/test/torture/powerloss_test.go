package torture_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/torture"
)

// losing are the arguments of a child that loses power.
type losing struct {
	writing
	// Outbox is false where the engine refuses it, with a relaxed database.
	Outbox bool
	// Trace is the file that gets the acknowledgements.
	Trace string
	Units int
}

// acknowledgement is what the disk had when a unit was acknowledged.
type acknowledgement struct {
	Unit   string
	Size   int64 // of the log
	Synced int64 // how much of it survives a loss of power
}

var errEnough = errors.New("enough units")

// losePower is the role of that child: write, note what was synced at each
// acknowledgement, and wait to be killed, so that the log stays as it is.
func losePower(ctx context.Context, self *torture.Self) error {
	var args losing
	if err := self.Args(&args); err != nil {
		return err
	}
	file, _, _ := strings.Cut(strings.TrimPrefix(args.DSN, "sqlite:"), "?")
	if err := watchWALSync(file + "-wal"); err != nil {
		return err
	}
	trace, err := writeTraced(ctx, args, file+"-wal")
	if err != nil {
		return err
	}
	text, err := json.Marshal(trace)
	if err != nil {
		return err
	}
	if err := os.WriteFile(args.Trace, text, 0o600); err != nil {
		return err
	}
	self.Ready()
	<-ctx.Done()
	return nil
}

func writeTraced(ctx context.Context, args losing, wal string) ([]acknowledgement, error) {
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return nil, err
	}
	ledger := torture.NewLedger()
	eng, err := perdure.Open(ctx, args.DSN, options(ledger.Schema, args.Outbox))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var trace []acknowledgement
	err = ledger.Write(ctx, eng, journal, 1, func(unit string) {
		trace = append(trace, acknowledgement{Unit: unit, Size: sizeOf(wal), Synced: walSync.synced.Load()})
		if len(trace) == args.Units {
			cancel(errEnough)
		}
	})
	return trace, err
}

// traced runs the child and returns its trace and its database file.
func traced(t *testing.T, parameters string, box bool) ([]acknowledgement, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "power.db")
	args := losing{
		writing: writing{DSN: "sqlite:" + file + parameters, Journal: filepath.Join(dir, "journal")},
		Outbox:  box, Trace: filepath.Join(dir, "trace"), Units: 50,
	}
	child, err := torture.StartChild("losePower", args)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(child.AwaitReady(t.Context()), child.Kill()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(args.Trace)
	if err != nil {
		t.Fatal(err)
	}
	var trace []acknowledgement
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	for i := range trace[1:] {
		if trace[i+1].Size <= trace[i].Size {
			t.Fatal("the log was reset during the test, so its size says nothing")
		}
	}
	return trace, file
}

func TestSQLiteKeepsAcknowledgedUnitsWhenPowerIsLost(t *testing.T) {
	t.Parallel()
	trace, file := traced(t, "", true)
	for i, a := range trace {
		if a.Synced < a.Size {
			t.Errorf("unit %d was acknowledged with %d of %d bytes synced", i, a.Synced, a.Size)
		}
	}
	choose := mathrand.New(mathrand.NewPCG(seedOf(t), 0))
	offsets := cuts(trace, choose, times(100))
	for _, cut := range offsets {
		known := map[string]torture.Outcome{}
		for _, a := range trace {
			known[a.Unit] = torture.Unknown
			if a.Synced <= cut {
				known[a.Unit] = torture.Acknowledged
			}
		}
		lost := afterPowerLoss(t, file, cut, choose.IntN(2) == 0)
		if err := integrity(t.Context(), lost); err != nil {
			t.Errorf("log cut at %d: %v", cut, err)
		}
		none(t, "after power loss", findings(t, torture.NewLedger(), "sqlite:"+lost, known))
	}
	t.Logf("%d units, log of %d bytes, cut at %d places", len(trace), trace[len(trace)-1].Size, len(offsets))
}

// Without the sync at commit, the same test sees units lost: it can fail.
func TestSQLiteLosesUnitsWithoutTheSyncAtCommit(t *testing.T) {
	t.Parallel()
	trace, file := traced(t, "?synchronous=normal", false)
	last := trace[len(trace)-1]
	if last.Synced >= last.Size {
		t.Fatal("the log was synced at commit")
	}
	ledger := torture.NewLedger()
	db, err := torture.OpenDB(t.Context(), "sqlite:"+afterPowerLoss(t, file, last.Synced, false))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := torture.Dump(t.Context(), db, ledger.Schema)
	if _, there := rows["heads/"+last.Unit]; there {
		t.Error("the last unit is there")
	}
	t.Logf("%d of %d bytes were synced: %d rows are left (%v)", last.Synced, last.Size, len(rows), err)
}

// cuts returns places to cut the log at: where each acknowledged unit ended,
// one byte more and less, and others between, none before the first.
func cuts(trace []acknowledgement, choose *mathrand.Rand, n int) []int64 {
	first, last := trace[0].Synced, trace[len(trace)-1].Size
	offsets := []int64{first, last}
	for len(offsets) < n {
		at := first + choose.Int64N(last-first)
		if choose.IntN(2) == 0 {
			at = trace[choose.IntN(len(trace))].Synced + choose.Int64N(3) - 1
		}
		offsets = append(offsets, max(at, first))
	}
	return offsets
}

// afterPowerLoss copies the database as a disk would have it that lost all of
// the log after cut, or has garbage there.
func afterPowerLoss(t *testing.T, file string, cut int64, garbage bool) string {
	t.Helper()
	lost := filepath.Join(t.TempDir(), "lost.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(file + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix == "-wal" {
			content = content[:cut:cut]
			if garbage {
				noise := make([]byte, 5000)
				_, _ = rand.Read(noise) // never fails
				content = append(content, noise...)
			}
		}
		if err := os.WriteFile(lost+suffix, content, fs.FileMode(0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return lost
}
