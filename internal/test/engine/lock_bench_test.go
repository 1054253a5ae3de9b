package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// BenchmarkUnitsBesideALockedRow compares 56 writers alone with the same writers beside 8
// writers of a row that another program has locked. PERDURE_SOAK=15 makes it lock the row
// for 60 s.
func BenchmarkUnitsBesideALockedRow(b *testing.B) {
	for _, name := range servers {
		for _, outbox := range []bool{false, true} {
			for _, open := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/Outbox=%v/Open=%v", name, outbox, open), func(b *testing.B) {
					benchmarkLocked(b, enginetest.New(b, name), outbox, open)
				})
			}
		}
	}
}

func benchmarkLocked(b *testing.B, db enginetest.Database, outbox, open bool) {
	for range b.N {
		f := measureLocked(b, db, outbox, open)
		b.ReportMetric(f.calm, "calm/s")
		b.ReportMetric(f.throughput, "throughput-ratio")
		b.ReportMetric(f.calmP99.Seconds()*1000, "calm-p99-ms")
		b.ReportMetric(f.p99, "p99-ratio")
		b.ReportMetric(f.late.Seconds()*1000, "latest-return-ms")
	}
}

// besideALock are figures of writers beside a locked row, compared with the same writers
// without it.
type besideALock struct {
	calm            float64 // units per second without the locked row
	calmP99         time.Duration
	throughput, p99 float64       // ratios
	late            time.Duration // the longest time by which a caller exceeded its context
}

// measureLocked measures both in turns, so that a change of the load of the machine concerns
// both.
func measureLocked(t testing.TB, db enginetest.Database, outbox, open bool) besideALock {
	t.Helper()
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: outbox})
	createUser(t, eng, "locked")
	const writers, blocked = 56, 8
	length := 2 * time.Second * time.Duration(enginetest.Soak())
	if enginetest.Soak() == 1 {
		length = 500 * time.Millisecond
	}
	writeFor(t, eng, "warm", writers, open, time.Second)
	var calm, beside []time.Duration
	var f besideALock
	for half := range 2 {
		calm = append(calm, writeFor(t, eng, fmt.Sprint("calm", half), writers, open, length)...)
		release := lockUser(t, db, "locked")
		stop := waitAtLock(t, eng, blocked, open, &f.late)
		beside = append(beside, writeFor(t, eng, fmt.Sprint("beside", half), writers, open, length)...)
		release()
		stop()
	}
	slices.Sort(calm)
	slices.Sort(beside)
	f.calm, f.calmP99 = float64(len(calm))/(2*length.Seconds()), calm[len(calm)*99/100]
	f.throughput = float64(len(beside)) / float64(len(calm))
	f.p99 = float64(beside[len(beside)*99/100]) / float64(f.calmP99)
	return f
}

// Units that do not need a locked row are as fast as without it. PERDURE_SOAK=15 locks the row
// for 60 s and compares exactly, on a quiet machine. The short form only finds writers that
// wait for the lock: they would do nearly nothing.
func TestUnitsBesideALockedRowAreAsFastAsWithoutIt(t *testing.T) {
	for _, name := range servers {
		for _, outbox := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Outbox=%v", name, outbox), func(t *testing.T) {
				f := measureLocked(t, enginetest.New(t, name), outbox, !outbox)
				t.Logf("%.0f/s, p99 %v without the lock; throughput %.2f x, p99 %.2f x beside it; a caller exceeded its context by %v at most", f.calm, f.calmP99, f.throughput, f.p99, f.late)
				least, most := 0.1, 50.0
				if enginetest.Soak() >= 10 {
					least, most = 0.9, 2
				}
				if f.throughput < least || f.p99 > most {
					t.Errorf("throughput %.2f x, want %.1f; p99 %.2f x, want at most %.0f", f.throughput, least, f.p99, most)
				}
			})
		}
	}
}

// writeFor commits units that need no common row, and returns their durations.
func writeFor(b testing.TB, eng *perdure.Engine, prefix string, writers int, open bool, length time.Duration) (took []time.Duration) {
	b.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(length)
	for w := range writers {
		all.Go(func() {
			var mine []time.Duration
			for i := 0; time.Now().Before(end); i++ {
				begun := time.Now()
				if err := eng.Update(context.Background(), unitWith(fmt.Sprint(prefix, w, "-", i), open)); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(begun))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	all.Wait()
	return took
}

// waitAtLock starts callers that need the locked row, with contexts of two seconds, until
// stop. late is the longest time by which a caller has exceeded its context.
func waitAtLock(b testing.TB, eng *perdure.Engine, callers int, open bool, late *time.Duration) (stop func()) {
	b.Helper()
	stopping := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	for range callers {
		all.Go(func() {
			for {
				select {
				case <-stopping:
					return
				default:
				}
				const patience = 2 * time.Second
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				begun := time.Now()
				err := eng.Update(ctx, addPoint("locked", open))
				cancel()
				var locked *fault.Locked
				if err != nil && !errors.As(err, &locked) {
					b.Errorf("a caller of the locked row: %v", err)
				}
				mu.Lock()
				*late = max(*late, time.Since(begun)-patience)
				mu.Unlock()
			}
		})
	}
	return func() {
		close(stopping)
		all.Wait()
	}
}
