package dispatch_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// joinSQL triggers a hook in a transaction of database/sql, and returns when it is
// committed. between runs after the join.
func joinSQL(t testing.TB, raw *sql.DB, eng *perdure.Engine, hooks *hook.Hooks, payload any, between func()) {
	t.Helper()
	ctx := enginetest.Context(t)
	tx, err := raw.BeginTx(ctx, nil)
	noError(t, err)
	defer tx.Rollback()
	noError(t, eng.JoinSQL(ctx, tx, func(tx *perdure.Tx) error {
		_, err := hooks.TriggerIn(tx, "a", payload, nil)
		return err
	}))
	if between != nil {
		between()
	}
	noError(t, tx.Commit())
}

// The committing process has no handlers, and the other one does not poll. Nothing is
// called after the commit.
func TestJoinedWorkStartsInAnotherProcessWithoutPolling(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		hooks := newHooks(t, db.Open(t, nil), nil)
		ran := define(t, hooks, "a", nil)
		waker, err := dispatch.NewWaker(hooks, &dispatch.WakerOptions{MaxSleep: time.Hour})
		run(t, waker, err)
		eng, raw := db.Open(t, nil), db.SQL(t)
		sender := newHooks(t, eng, nil)
		for range 3 { // the first may come before the dispatcher sleeps
			joinSQL(t, raw, eng, sender, 1, nil)
			within(t, ran)
		}
	})
}

// The transaction stays open for longer than the first queries for its end.
func TestJoinedWorkStartsAfterALongTransaction(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		eng, raw := db.Open(t, nil), db.SQL(t)
		hooks := newHooks(t, eng, nil)
		ran := define(t, hooks, "a", nil)
		waker, err := dispatch.NewWaker(hooks, &dispatch.WakerOptions{MaxSleep: time.Hour})
		run(t, waker, err)
		for range 2 {
			joinSQL(t, raw, eng, hooks, 1, func() { <-time.After(300 * time.Millisecond) })
			within(t, ran)
		}
	})
}

func TestWorkJoinedThroughPgxStartsInAnotherProcessWithoutPolling(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	hooks := newHooks(t, db.Open(t, nil), nil)
	ran := define(t, hooks, "a", nil)
	waker, err := dispatch.NewWaker(hooks, &dispatch.WakerOptions{MaxSleep: time.Hour})
	run(t, waker, err)
	ctx := enginetest.Context(t)
	conn, err := pgx.Connect(ctx, db.DSN)
	noError(t, err)
	defer conn.Close(context.Background())
	eng := db.Open(t, nil)
	sender := newHooks(t, eng, nil)
	for range 3 {
		tx, err := conn.Begin(ctx)
		noError(t, err)
		noError(t, eng.JoinPgx(ctx, tx, func(tx *perdure.Tx) error {
			_, err := sender.TriggerIn(tx, "a", 1, nil)
			return err
		}))
		noError(t, tx.Commit(ctx))
		within(t, ran)
	}
}

// A program that writes Perdure's tables without the engine calls Wake.
func TestWakeReachesOtherProcesses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.Postgres, enginetest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			hooks := newHooks(t, db.Open(t, nil), nil)
			counted := &counting{Hooks: hooks}
			waker, err := dispatch.NewWaker(counted, &dispatch.WakerOptions{MaxSleep: time.Hour})
			run(t, waker, err)
			eng := db.Open(t, nil)
			for range 3 {
				before := counted.calls.Load()
				enginetest.Eventually(t, "the other process looks", func() bool {
					eng.Wake() // the first ones may come before it listens
					return counted.calls.Load() > before
				})
			}
		})
	}
}

// BenchmarkJoinedPickUp measures the time from the commit of a joined transaction to the
// start of its hook in another engine with default settings.
func BenchmarkJoinedPickUp(b *testing.B) {
	for _, name := range enginetest.Names {
		b.Run(name, func(b *testing.B) {
			db := enginetest.New(b, name)
			hooks := newHooks(b, db.Open(b, nil), nil)
			waits := make(chan time.Time, 1)
			_, err := hook.Define(hooks, "a", func(context.Context, int) error { waits <- time.Now(); return nil }, nil)
			noError(b, err)
			waker, err := dispatch.NewWaker(hooks, nil)
			run(b, waker, err)
			eng, raw := db.Open(b, nil), db.SQL(b)
			sender := newHooks(b, eng, nil)
			var all []time.Duration
			for b.Loop() {
				joinSQL(b, raw, eng, sender, 1, nil)
				committed := time.Now()
				all = append(all, (<-waits).Sub(committed))
				<-time.After(time.Duration(len(all)%10) * 7 * time.Millisecond) // not in step with the watch
			}
			slices.Sort(all)
			at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1e3 }
			b.ReportMetric(at(0.5), "p50-ms")
			b.ReportMetric(at(0.99), "p99-ms")
		})
	}
}
