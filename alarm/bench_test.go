package alarm_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

// durable runs a benchmark on every database that carries alarms, with commits
// that reach the disk.
func durable(b *testing.B, run func(b *testing.B, db enginetest.Database)) {
	b.Helper()
	for _, name := range databases {
		b.Run(name, func(b *testing.B) {
			db := enginetest.Database{Name: name, DSN: "sqlite:" + filepath.Join(b.TempDir(), "perdure.db")}
			if name == enginetest.Postgres {
				db.DSN = testdb.DurablePostgres(b)
			}
			run(b, db)
		})
	}
}

// fill schedules n alarms of the type "a".
func fill(b *testing.B, eng *perdure.Engine, alarms *alarm.Alarms, n int, o *alarm.ScheduleOptions) {
	b.Helper()
	for from := 0; from < n; from += 1000 {
		enginetest.NoError(b, eng.Update(context.Background(), func(tx *perdure.Tx) error {
			for i := from; i < min(from+1000, n); i++ {
				_ = alarms.ScheduleIn(tx, alarm.ID(fmt.Sprint("x", i)), "a", 1, o) // the unit has the error
			}
			return nil
		}))
	}
}

// BenchmarkDrain measures how many alarms whose handlers do nothing a process
// fires in a second, all due at the same moment.
func BenchmarkDrain(b *testing.B) {
	durable(b, func(b *testing.B, db enginetest.Database) {
		eng := db.Open(b, nil)
		alarms := newAlarms(b, eng, &alarm.Options{Concurrency: 64})
		_, err := alarm.Handle(alarms, "a", func(context.Context, int) error { return nil }, nil)
		enginetest.NoError(b, err)
		fill(b, eng, alarms, b.N, nil)
		b.ResetTimer()
		for fired := 0; fired < b.N; {
			n, err := alarms.Process(context.Background())
			enginetest.NoError(b, err)
			fired += n
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "alarms/s")
	})
}

// BenchmarkIdle measures a look at a table in which nothing is due, however much
// waits.
func BenchmarkIdle(b *testing.B) {
	durable(b, func(b *testing.B, db enginetest.Database) {
		eng := db.Open(b, nil)
		alarms := newAlarms(b, eng, nil)
		_, err := alarm.Handle(alarms, "a", func(context.Context, int) error { return nil }, nil)
		enginetest.NoError(b, err)
		fill(b, eng, alarms, 20_000, &alarm.ScheduleOptions{Delay: 24 * time.Hour})
		for b.Loop() {
			n, err := alarms.Process(context.Background())
			enginetest.NoError(b, err)
			equal(b, "fired", n, 0)
		}
	})
}

// BenchmarkPrecision measures how late an alarm is fired with the Alarm
// dispatcher.
func BenchmarkPrecision(b *testing.B) {
	durable(b, func(b *testing.B, db enginetest.Database) {
		eng := db.Open(b, nil)
		alarms := newAlarms(b, eng, nil)
		started := make(chan time.Time, 1)
		_, err := alarm.Handle(alarms, "a", func(context.Context, int) error { started <- time.Now(); return nil }, nil)
		enginetest.NoError(b, err)
		d, err := dispatch.NewWaker(alarms, nil)
		enginetest.NoError(b, err)
		d.Start()
		defer d.Stop(context.Background())
		var late []time.Duration
		for b.Loop() {
			due := time.Now().Add(100 * time.Millisecond)
			enginetest.NoError(b, alarms.Schedule(context.Background(), alarm.ID("x"), "a", 1, &alarm.ScheduleOptions{At: due}))
			late = append(late, (<-started).Sub(due))
		}
		slices.Sort(late)
		b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "p99-ms")
	})
}
