package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/histogram"
	"github.com/perdure/perdure/internal/store"
)

// SampleWaits stores the wait times of work in this process since the last sample, under
// the name of the process.
func (i *Inspector) SampleWaits(ctx context.Context, node string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var sum histogram.Counts
	for _, w := range i.rt.Workers.All() {
		sum = sum.Plus(w.Stats().Waited)
	}
	fresh, until := sum.Minus(i.waited), i.rt.Clock.Now().UTC().Truncate(SampleEvery)
	if fresh.Total() == 0 || until.Equal(i.sampled) { // once per interval
		return nil
	}
	err := i.write(ctx, i.rt.Store.InsertWaits(node, store.Waits{At: until, Buckets: fresh.Buckets[:]}), i.rt.Store.PurgeWaits(until.Add(-keepSamples)))
	if err != nil {
		return fmt.Errorf("store wait times: %w", err)
	}
	i.waited, i.sampled = sum, until
	return nil
}

// Waits has the wait times of one process in an interval that ends at At.
type Waits struct {
	At time.Time
	histogram.Counts
}

// Waits returns the wait times by interval, after a time.
func (i *Inspector) Waits(ctx context.Context, after time.Time) ([]Waits, error) {
	var all []Waits
	err := i.read(ctx, i.rt.Store.ListWaits(after, func(w store.Waits) {
		shown := Waits{At: w.At}
		copy(shown.Buckets[:], w.Buckets)
		all = append(all, shown)
	}))
	if err != nil {
		return nil, fmt.Errorf("read wait times: %w", err)
	}
	return all, nil
}
