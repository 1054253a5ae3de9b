package flow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/retry"
)

// roles are the main functions of the children of this test.
var roles = map[string]torture.Role{"functions": runFunctions}

// victim are the arguments of a child that runs functions until it is killed.
type victim struct {
	DSN    string
	Starts bool
}

// booking has three transactions, with effects, branches and a sleep between them. The ledger has
// no key, so it accepts a row twice.
var booking = flow.Define("booking", 1, func(run *flow.Run, _ int) (int, error) {
	book := func(run *flow.Run, n int) error {
		_, err := flow.Tx(run, fmt.Sprint("book", n), func(tx *perdure.Tx) (int, error) {
			_, err := tx.Exec(fmt.Sprintf("insert into ledger (id, n) values ('%s', %d)", run.ID(), n))
			return n, err
		}, flow.Retry(retry.Fixed(1000, 10*time.Millisecond)))
		return err
	}
	effect := func(run *flow.Run, name string) error {
		_, err := flow.Step(run, name, func(ctx context.Context) (int64, error) {
			torture.Pause(ctx, time.Duration(rand.Int64N(int64(3*time.Millisecond))))
			return rand.Int64(), ctx.Err()
		}, flow.Retry(retry.Fixed(1000, 10*time.Millisecond)))
		return err
	}
	if err := effect(run, "a"); err != nil {
		return 0, err
	}
	if err := book(run, 0); err != nil {
		return 0, err
	}
	if err := flow.Sleep(run, "pause", 5*time.Millisecond); err != nil {
		return 0, err
	}
	_, err := flow.Map(run, "branch", []int{1, 2}, func(run *flow.Run, n int) (int, error) {
		if err := effect(run, "b"); err != nil {
			return 0, err
		}
		return n, book(run, n)
	})
	return 3, err
})

func openFunctions(ctx context.Context, dsn string) (*perdure.Engine, *fsm.Machines, *dispatch.Waker, error) {
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	machines, err := fsm.New(eng, &fsm.Options{
		Queues: map[string]int{fsm.DefaultQueue: 20}, Lease: time.Second, OnError: func(error) {}, OnCrash: func(perdure.Crash) {},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if err := machines.Register(booking); err != nil {
		return nil, nil, nil, err
	}
	waker, err := dispatch.NewWaker(machines, &dispatch.WakerOptions{MaxSleep: 50 * time.Millisecond, OnError: func(error) {}})
	return eng, machines, waker, err
}

// runFunctions starts and runs functions until it is killed.
func runFunctions(ctx context.Context, self *torture.Self) error {
	var args victim
	if err := self.Args(&args); err != nil {
		return err
	}
	eng, _, waker, err := openFunctions(ctx, args.DSN)
	if err != nil {
		return err
	}
	waker.Start()
	for args.Starts && ctx.Err() == nil {
		if _, err := flow.StartMany(ctx, eng, booking, make([]int, 5), nil); err == nil {
			self.Ready()
		}
		torture.Pause(ctx, 10*time.Millisecond)
	}
	self.Ready()
	<-ctx.Done()
	return waker.Stop(context.WithoutCancel(ctx))
}

// TestKilledProcessesBookExactlyOnce kills processes that run functions, and suspends one of them
// for longer than its lease. The rows of transactions are written exactly once, the default of five
// crashes quarantines no function that makes progress, and none is lost.
func TestKilledProcessesBookExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) string{
		enginetest.SQLite:   func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "torture.db") },
		enginetest.Postgres: testdb.DurablePostgres,
		enginetest.MySQL:    testdb.DurableMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := open(t)
			eng, machines, waker, err := openFunctions(t.Context(), dsn)
			enginetest.NoError(t, err)
			defer func() { enginetest.NoError(t, eng.Close()) }()
			exec(t, eng, "create table ledger (id varchar(36), n integer)")

			zombie, err := torture.StartChild("functions", victim{DSN: dsn, Starts: true})
			enginetest.NoError(t, err)
			enginetest.NoError(t, zombie.AwaitReady(t.Context()))
			loop := &torture.CrashLoop{
				Start: func() (*torture.Child, error) {
					return torture.StartChild("functions", victim{DSN: dsn, Starts: true})
				},
				Kills: 6 * enginetest.Soak(), Seed: rand.Uint64(), Longest: 150 * time.Millisecond,
			}
			t.Logf("seed %d", loop.Seed)
			enginetest.NoError(t, loop.Run(t.Context()))
			waker.Start()
			enginetest.NoError(t, syscall.Kill(zombie.PID(), syscall.SIGSTOP))
			torture.Pause(t.Context(), 1500*time.Millisecond) // its lease of one second has expired
			enginetest.NoError(t, syscall.Kill(zombie.PID(), syscall.SIGCONT))
			enginetest.NoError(t, zombie.Stop())
			enginetest.Eventually(t, "all functions end", func() bool {
				live, _, err := machines.List(t.Context(), fsm.Filter{Live: true}, "", 1)
				enginetest.NoError(t, err)
				return len(live) == 0
			})
			enginetest.NoError(t, waker.Stop(enginetest.Context(t)))
			checkLedger(t, eng, machines)
		})
	}
}

// checkLedger checks that each done function has its three rows once.
func checkLedger(t *testing.T, eng *perdure.Engine, machines *fsm.Machines) {
	t.Helper()
	rows := map[string][3]int{}
	enginetest.NoError(t, eng.View(t.Context(), func(tx *perdure.Tx) error {
		r, err := tx.Query("select id, n from ledger")
		if err != nil {
			return err
		}
		defer r.Close()
		for r.Next() {
			var id string
			var n int
			if err := r.Scan(&id, &n); err != nil {
				return err
			}
			counts := rows[id]
			counts[n]++
			rows[id] = counts
		}
		return r.Err()
	}))
	functions, cursor := 0, ""
	for {
		page, next, err := machines.List(t.Context(), fsm.Filter{}, cursor, 100)
		enginetest.NoError(t, err)
		for _, i := range page {
			functions++
			if i.Status != fsm.Done || rows[i.ID] != [3]int{1, 1, 1} {
				t.Errorf("function %s is %s (%s) and booked %v times, want each once", i.ID, i.Status, i.Error, rows[i.ID])
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	if functions < 20 {
		t.Errorf("only %d functions ran", functions)
	}
	t.Logf("%d functions", functions)
}

func exec(t *testing.T, eng *perdure.Engine, query string) {
	t.Helper()
	enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := tx.Exec(query)
		return err
	}))
}
