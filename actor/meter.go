package actor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/histogram"
)

// delays reports the firing of timers to the metrics of this process. A work item is an actor
// that is moved because one of its timers is due.
type delays struct{ actors *Actors }

var _ core.Watched = delays{}

// meter counts the outcomes of timers.
type meter struct {
	running, moved, quarantined, errors atomic.Int64
	took, waited                        histogram.Histogram
}

// Kind implements core.Watched.
func (d delays) Kind() string { return namespace }

// Queue implements core.Watched.
func (d delays) Queue() string { return "delays" }

// Stats implements core.Watched.
func (d delays) Stats() core.Stats {
	m := &d.actors.firing.meter
	moved, failed := m.moved.Load(), m.errors.Load()
	return core.Stats{
		Claimed: moved + failed, Running: m.running.Load(), Committed: moved, Failed: m.quarantined.Load(), Errors: failed,
		Took: m.took.Counts(), Waited: m.waited.Counts(),
	}
}

// Takes implements core.Watched.
func (d delays) Takes(ctx context.Context) (names []string, ok bool) {
	f := &d.actors.firing
	f.mu.Lock()
	ok = f.begun && !f.stopping
	f.mu.Unlock()
	if !ok {
		return nil, false
	}
	names, err := d.actors.types(ctx)
	return append([]string{}, names...), err == nil
}

// Due implements core.Watched.
func (d delays) Due(ctx context.Context) (wait time.Duration, ok bool, err error) {
	types, err := d.actors.types(ctx)
	if err != nil || len(types) == 0 {
		return 0, false, err
	}
	a := d.actors
	err = a.read(ctx, a.rt.Store.NextTimer(types, a.rt.Now(), func(next time.Duration) { wait, ok = next, true }))
	return wait, ok, err
}

// measure counts the actors of a batch that a pass moved, or could not move because of an
// error.
func (m *meter) measure(b *batch, took time.Duration, err error) (moved int) {
	for _, t := range b.order {
		switch {
		case err != nil:
			m.errors.Add(1)
			continue
		case !t.moved() && t.timers.empty():
			continue
		case t.reason != nil:
			m.quarantined.Add(1)
		}
		moved++
		m.took.Observe(took)
		m.waited.Observe(t.late)
	}
	m.moved.Add(int64(moved))
	return moved
}
