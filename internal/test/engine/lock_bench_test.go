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
	eng := db.Open(b, &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: outbox})
	createUser(b, eng, "locked")
	const writers, blocked = 56, 8
	length := 2 * time.Second * time.Duration(enginetest.Soak())
	writeFor(b, eng, "warm", writers, open, time.Second)
	for n := range b.N {
		var calm, beside []time.Duration
		late := time.Duration(0)
		for half := range 2 {
			calm = append(calm, writeFor(b, eng, fmt.Sprint("calm", n, half), writers, open, length)...)
			release := lockUser(b, db, "locked")
			stop := waitAtLock(b, eng, blocked, open, &late)
			beside = append(beside, writeFor(b, eng, fmt.Sprint("beside", n, half), writers, open, length)...)
			release()
			stop()
		}
		slices.Sort(calm)
		slices.Sort(beside)
		p99 := func(d []time.Duration) float64 { return float64(d[len(d)*99/100]) }
		b.ReportMetric(float64(len(calm))/(2*length.Seconds()), "calm/s")
		b.ReportMetric(float64(len(beside))/float64(len(calm)), "throughput-ratio")
		b.ReportMetric(p99(calm)/1e6, "calm-p99-ms")
		b.ReportMetric(p99(beside)/p99(calm), "p99-ratio")
		b.ReportMetric(late.Seconds()*1000, "latest-return-ms")
	}
}

// writeFor commits units that need no common row, and returns their durations.
func writeFor(b *testing.B, eng *perdure.Engine, prefix string, writers int, open bool, length time.Duration) (took []time.Duration) {
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
func waitAtLock(b *testing.B, eng *perdure.Engine, callers int, open bool, late *time.Duration) (stop func()) {
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
