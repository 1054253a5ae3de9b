package hook_test

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

// durable runs a benchmark on every database, with commits that reach the
// disk.
func durable(b *testing.B, run func(b *testing.B, db enginetest.Database)) {
	b.Helper()
	for _, name := range enginetest.Names {
		b.Run(name, func(b *testing.B) {
			db := enginetest.Database{Name: name}
			switch name {
			case enginetest.Postgres:
				db.DSN = testdb.DurablePostgres(b)
			case enginetest.MySQL:
				db.DSN = testdb.DurableMySQL(b)
			default:
				db.DSN = "sqlite:" + filepath.Join(b.TempDir(), "perdure.db")
			}
			run(b, db)
		})
	}
}

// BenchmarkDrain measures how many hooks that do nothing a process runs in a
// second, out of a backlog.
func BenchmarkDrain(b *testing.B) {
	for _, concurrency := range []int{64, 1000} {
		b.Run(strconv.Itoa(concurrency), func(b *testing.B) { benchmarkDrain(b, concurrency) })
	}
}

func benchmarkDrain(b *testing.B, concurrency int) {
	durable(b, func(b *testing.B, db enginetest.Database) {
		eng := db.Open(b, nil)
		hooks := newHooks(b, eng, "test", &hook.Options{Concurrency: concurrency})
		define(b, hooks, "a", func(context.Context, int) error { return nil })
		for left := b.N; left > 0; left -= 1000 {
			enginetest.NoError(b, eng.Update(context.Background(), func(tx *perdure.Tx) error {
				for range min(left, 1000) {
					_, _ = hooks.TriggerIn(tx, "a", 1, nil) // the unit has the error
				}
				return nil
			}))
		}
		b.ResetTimer()
		for ran := 0; ran < b.N; {
			n, err := hooks.Process(context.Background())
			enginetest.NoError(b, err)
			ran += n
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hooks/s")
	})
}

// BenchmarkTriggerToStart measures the time from the call of Update to the
// start of the handler, one hook at a time.
func BenchmarkTriggerToStart(b *testing.B) {
	durable(b, func(b *testing.B, db enginetest.Database) {
		measure(b, db, 0)
	})
}

// BenchmarkPrecision measures how late a hook of the future starts with the
// Alarm dispatcher.
func BenchmarkPrecision(b *testing.B) {
	durable(b, func(b *testing.B, db enginetest.Database) {
		measure(b, db, 100*time.Millisecond)
	})
}

// measure triggers hooks that are due after a delay, one by one, and reports
// how long after that they start.
func measure(b *testing.B, db enginetest.Database, delay time.Duration) {
	b.Helper()
	eng := db.Open(b, nil)
	hooks := newHooks(b, eng, "test", nil)
	started := make(chan time.Time, 1)
	define(b, hooks, "a", func(context.Context, int) error { started <- time.Now(); return nil })
	alarm, err := dispatch.NewWaker(hooks, nil)
	enginetest.NoError(b, err)
	alarm.Start()
	defer alarm.Stop(context.Background())
	var late []time.Duration
	for b.Loop() {
		due := time.Now().Add(delay)
		options := &hook.TriggerOptions{}
		if delay > 0 {
			options.At = due
		}
		enginetest.NoError(b, eng.Update(context.Background(), func(tx *perdure.Tx) error {
			_, err := hooks.TriggerIn(tx, "a", 1, options)
			return err
		}))
		late = append(late, (<-started).Sub(due))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "p99-ms")
}
