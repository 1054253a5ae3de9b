package pull

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// guardEvery is the interval at which crashed workers are looked for.
	guardEvery = 200 * time.Millisecond
	// idleFactor is the number of leases after which a session without work has ended.
	idleFactor = 4
	// purgeEvery is the interval at which old receipts are removed, receiptAge their retention.
	purgeEvery = 5 * time.Minute
	receiptAge = time.Hour
	purgeLimit = 10_000
)

// clock returns the clock of workers. They are outside this process, so it is never a clock of a
// test.
func (b *Broker) clock() clock.Clock { return clock.System }

// check ends the sessions whose workers have crashed, and removes old receipts.
func (b *Broker) check() {
	now := clock.System.Now()
	b.mu.Lock()
	var dead []*session
	for _, s := range b.sessions {
		silent := now.Sub(s.seen)
		if s.waiter == nil && (silent > s.lease && len(s.tasks) > 0 || silent > idleFactor*s.lease) {
			dead = append(dead, s)
		}
	}
	purge := now.Sub(b.purged) > purgeEvery
	if purge {
		b.purged = now
	}
	b.mu.Unlock()
	for _, s := range dead {
		with := b.tasksOf(s)
		b.end(s, func(t *task) { t.finish(crash(s, t, with)) })
	}
	if purge {
		b.purge()
	}
}

func (b *Broker) tasksOf(s *session) []*task {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*task, 0, len(s.tasks))
	for _, t := range s.tasks {
		all = append(all, t)
	}
	return all
}

func (b *Broker) purge() {
	ctx, cancel := context.WithTimeout(context.Background(), b.rt.Timeout)
	defer cancel()
	err := unit.Once(ctx, b.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		return tx.Run(ctx, b.rt.Store.PurgeReceipts(receiptAge, purgeLimit, b.rt.Now()))
	})
	if err != nil {
		b.options.OnError(fmt.Errorf("purge receipts: %w", err))
	}
}
