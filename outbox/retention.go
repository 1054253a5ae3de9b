package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// purgeBatch is the maximum number of entries that one transaction removes.
const purgeBatch = 1000

// Purge removes entries that are older than age, oldest first. It never removes an entry
// that a registered consumer has not acknowledged. It returns the number of removed
// entries.
func (o *Outbox) Purge(ctx context.Context, age time.Duration) (int, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	before, total := o.clock.Now().UTC().Add(-age), 0
	for {
		n, err := o.purgeBatch(ctx, before)
		total += n
		if err != nil {
			return total, fmt.Errorf("purge outbox: %w", err)
		}
		if n < purgeBatch {
			return total, nil
		}
	}
}

// purgeBatch removes the oldest entries. It holds the lock that Register also takes, so
// that a new consumer cannot start within the entries that are being removed.
func (o *Outbox) purgeBatch(ctx context.Context, before time.Time) (n int, err error) {
	err = o.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		limit := NewStamp(1<<16-1, 1<<64-1, 1<<16-1)
		lowest := o.store.LowestConsumer(func(position []byte) { copy(limit[:], position) })
		if err := tx.Run(ctx, o.store.LockSetting(store.PrunedThrough), lowest); err != nil {
			return err
		}
		last, found, err := o.prunable(ctx, tx, limit, before)
		if err != nil || found == 0 {
			return err
		}
		n = found
		if err := tx.Run(ctx, o.store.DeleteEntries(last[:]), o.store.SetSetting(store.PrunedThrough, last.String())); err != nil {
			return err
		}
		return o.store.RecordRemoved(ctx, tx, o.clock.Now(), int64(n))
	})
	return n, err
}

// prunable returns the stamp of the last entry up to which all entries are old enough,
// and the number of these entries.
func (o *Outbox) prunable(ctx context.Context, tx sqldb.Tx, limit Stamp, before time.Time) (last Stamp, n int, err error) {
	young := false
	oldest := o.store.OldestEntries(limit[:], purgeBatch, func(stamp []byte, created time.Time) {
		if young = young || !created.Before(before); young {
			return
		}
		copy(last[:], stamp)
		n++
	})
	return last, n, tx.Run(ctx, oldest)
}

// Retain starts to purge entries older than age, in the background, until Close. The
// interval is a tenth of age, at least one minute and at most one hour. Several processes
// may do so concurrently.
func (o *Outbox) Retain(age time.Duration) {
	every := min(max(age/10, time.Minute), time.Hour)
	o.running.Go(func() {
		for o.stopped.Err() == nil {
			_, _ = o.Purge(o.stopped, age) // an error is retried at the next interval; Status shows the progress
			o.wait(o.stopped, nil, every)
		}
	})
}
