package torture_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
)

// effects is what a process that runs hooks is told: the database, and the file
// in which handlers note that they ran.
type effects struct {
	DSN, Ledger string
	// Longest is how long a handler takes at most.
	Longest time.Duration
	// Lease is how long a hook belongs to a process without a sign of life.
	Lease time.Duration
}

// newHooks returns the namespace of the test. Crashes never quarantine here: all
// that runs in a process that is killed is innocent.
func newHooks(eng *perdure.Engine, lease time.Duration) (*hook.Hooks, error) {
	return hook.New(eng, "torture", &hook.Options{
		Concurrency: 8, Lease: lease, MaxCrashes: 1_000_000, OnCrash: func(perdure.Crash) {}, OnError: func(error) {},
	})
}

// runHooks is a child that runs hooks until it is stopped, or killed.
func runHooks(ctx context.Context, self *torture.Self) error {
	var e effects
	if err := self.Args(&e); err != nil {
		return err
	}
	ledger, err := os.OpenFile(e.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	eng, err := perdure.Open(ctx, e.DSN, nil)
	if err != nil {
		return err
	}
	hooks, err := newHooks(eng, e.Lease)
	if err != nil {
		return err
	}
	_, err = hook.Define(hooks, "effect", func(ctx context.Context, _ int) error {
		if _, err := fmt.Fprintf(ledger, "begin %s\n", hook.FromContext(ctx).Key); err != nil {
			return err
		}
		torture.Pause(ctx, rand.N(e.Longest))
		_, err := fmt.Fprintf(ledger, "end %s\n", hook.FromContext(ctx).Key)
		return err
	}, nil)
	if err != nil {
		return err
	}
	poller, err := dispatch.NewPoller(hooks, &dispatch.PollerOptions{Interval: 100 * time.Millisecond, OnError: func(error) {}})
	if err != nil {
		return err
	}
	poller.Start()
	self.Ready()
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.Background(), testdb.Patience)
	defer cancel()
	return errors.Join(poller.Stop(stopping), eng.Close())
}

// triggered records hooks that are due and returns what to tell the children.
func triggered(t *testing.T, dsn string, n int) (*hook.Admin, effects) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	hooks, err := newHooks(eng, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
		for i := range n {
			if _, err := hooks.TriggerIn(tx, "effect", i, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := hook.NewAdmin(eng)
	if err != nil {
		t.Fatal(err)
	}
	return admin, effects{DSN: dsn, Ledger: filepath.Join(t.TempDir(), "ledger")}
}

// allCompleted waits until no hook is left to run, and returns them all.
func allCompleted(t *testing.T, admin *hook.Admin) []hook.Record {
	t.Helper()
	unfinished := hook.Filter{Statuses: append([]hook.Status{hook.Running}, hook.Waiting...)}
	deadline := time.After(testdb.Patience)
	for {
		left, _, err := admin.List(t.Context(), unfinished, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("still %s after two minutes: %+v", left[0].Status, left[0])
		default:
			torture.Pause(t.Context(), 20*time.Millisecond)
		}
	}
	var all []hook.Record
	for cursor := ""; ; {
		page, next, err := admin.List(t.Context(), hook.Filter{}, cursor, hook.MaxLimit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// executions counts what the handlers noted, by hook.
func executions(t *testing.T, ledger string) (begun, ended map[string]int) {
	t.Helper()
	file, err := os.Open(ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	begun, ended = map[string]int{}, map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		what, id, _ := strings.Cut(lines.Text(), " ")
		if what == "begin" {
			begun[id]++
		} else {
			ended[id]++
		}
	}
	return begun, ended
}

// dueHooks is how many hooks the processes run: more than they can between the kills.
var dueHooks = min(times(800), 2000)

func TestTwoProcessesRunEveryHookExactlyOnce(t *testing.T) {
	on(t, everything, func(t *testing.T, dsn string) {
		admin, e := triggered(t, dsn, dueHooks)
		e.Longest, e.Lease = time.Millisecond, time.Minute // however slow the machine is
		for range 2 {
			child, err := torture.StartChild("runHooks", e)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := child.Stop(); err != nil {
					t.Error(err)
				}
			}()
		}
		all := allCompleted(t, admin)
		begun, _ := executions(t, e.Ledger)
		for _, h := range all {
			if h.Status != hook.Done || h.Attempts != 1 || h.Crashes != 0 || begun[h.ID] != 1 {
				t.Errorf("hook %s is %s after %d attempts, %d crashes and %d executions", h.ID, h.Status, h.Attempts, h.Crashes, begun[h.ID])
			}
		}
		if len(all) != dueHooks {
			t.Errorf("%d hooks of %d", len(all), dueHooks)
		}
	})
}

// Two processes are killed over and over while they run hooks; whoever is left
// finishes the rest within a lease of the last kill.
func TestKilledProcessesLoseNoHook(t *testing.T) {
	on(t, everything, func(t *testing.T, dsn string) {
		admin, e := triggered(t, dsn, dueHooks)
		e.Longest, e.Lease = 60*time.Millisecond, time.Second
		start := func() (*torture.Child, error) { return torture.StartChild("runHooks", e) }
		seed, done := seedOf(t), make(chan error, 2)
		for i := range uint64(2) {
			go func() {
				loop := &torture.CrashLoop{Start: start, Kills: times(12), Seed: seed + i, Longest: 200 * time.Millisecond}
				done <- loop.Run(t.Context())
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		last, err := start()
		if err != nil {
			t.Fatal(err)
		}
		all := allCompleted(t, admin)
		if err := last.Stop(); err != nil {
			t.Error(err)
		}
		auditHooks(t, e, all)
	})
}

// auditHooks checks that none was lost and that every execution beyond the first
// has a crash to explain it.
func auditHooks(t *testing.T, e effects, all []hook.Record) {
	t.Helper()
	begun, ended := executions(t, e.Ledger)
	extra, crashes := 0, 0
	for _, h := range all {
		if h.Status != hook.Done || h.Attempts != 1 || ended[h.ID] == 0 {
			t.Errorf("hook %s is %s after %d attempts and %d effects", h.ID, h.Status, h.Attempts, ended[h.ID])
		}
		if begun[h.ID] > 1+h.Crashes {
			t.Errorf("hook %s was executed %d times with %d crashes", h.ID, begun[h.ID], h.Crashes)
		}
		extra, crashes = extra+begun[h.ID]-1, crashes+h.Crashes
	}
	if len(all) != dueHooks || crashes == 0 {
		t.Errorf("%d hooks of %d with %d crashes", len(all), dueHooks, crashes)
	}
	t.Logf("%d hooks, %d crashes, %d extra executions", len(all), crashes, extra)
}
