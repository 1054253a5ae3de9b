package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
)

// Join runs fn as part of the caller's own transaction on the engine's database and commits
// it. If rollback is set, it rolls back after fn was applied, and returns ErrRolledBack.
type Join func(ctx context.Context, eng *perdure.Engine, rollback bool, fn func(*perdure.Tx) error) error

// ErrRolledBack is the error of units that fail on purpose.
var ErrRolledBack = errors.New("rolled back on purpose")

// Load is a mixed workload on the tables of a shop.
type Load struct {
	// Shop has the tables.
	Shop *Shop
	// Engines are open on the same database. Writers are distributed among them.
	Engines []*perdure.Engine
	// Joins are ways to write in the caller's own transactions.
	Joins []Join
	// Writers is the number of goroutines that write.
	Writers int
	// Units is the maximum number of units. 0 means no limit.
	Units int
	// Duration is the maximum duration. 0 means no limit.
	Duration time.Duration
	// Enough reports whether the load may end after Duration: on a busy host few units are
	// written in any time. nil: it may.
	Enough func() bool
	// Seed makes the choices repeatable, as far as concurrency allows it.
	Seed uint64
	// History receives a record of every unit.
	History *History
}

// Run writes until a bound is reached or ctx is done.
func (l *Load) Run(ctx context.Context) {
	if l.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Duration)
		defer cancel()
	}
	tickets := l.tickets(ctx)
	var group sync.WaitGroup
	for i := range l.Writers {
		group.Go(func() {
			w := &loadWriter{
				Load: l, eng: l.Engines[i%len(l.Engines)],
				rand: rand.New(rand.NewPCG(l.Seed, uint64(i))),
			}
			for range tickets {
				// The end of the run does not cancel a unit, because its outcome must be recorded.
				l.History.Do(func(r *Record) error { return w.write(context.WithoutCancel(ctx), r) })
			}
		})
	}
	group.Wait()
}

// tickets returns a channel of permissions, each to write one unit.
func (l *Load) tickets(ctx context.Context) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		for n := 0; l.Units == 0 || n < l.Units; n++ {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
				if l.Enough == nil || l.Enough() {
					return
				}
				c <- struct{}{}
			}
		}
	}()
	return c
}

// loadWriter is one writing goroutine.
type loadWriter struct {
	*Load
	eng  *perdure.Engine
	rand *rand.Rand
}

// write writes one unit in a randomly chosen way.
func (w *loadWriter) write(ctx context.Context, r *Record) error {
	if w.chance(8) { // the caller cancels at an arbitrary time
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer w.cancelLater(cancel)()
	}
	if len(w.Joins) > 0 && w.chance(15) {
		r.Style = "joined"
		join := w.Joins[w.rand.IntN(len(w.Joins))]
		return join(ctx, w.eng, w.chance(20), w.unit(r))
	}
	return w.eng.Update(ctx, w.unit(r))
}

// cancelLater cancels within a few milliseconds, or when the unit has ended.
func (w *loadWriter) cancelLater(cancel context.CancelFunc) (stop func()) {
	timer := clock.System.NewTimer(time.Duration(w.rand.Int64N(int64(5 * time.Millisecond))))
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		select {
		case <-timer.C():
		case <-ended:
		}
		cancel()
	})
	return func() { close(ended); timer.Stop(); group.Wait() }
}

// chance returns true in percent of the cases.
func (w *loadWriter) chance(percent int) bool { return w.rand.IntN(100) < percent }
