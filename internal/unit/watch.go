package unit

import (
	"context"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// watchEvery is the interval at which a transaction that takes long is examined.
	watchEvery = 250 * time.Millisecond
	// watchTimeout bounds one examination.
	watchTimeout = 2 * time.Second
)

// Watch finds the session that holds the outbox counter while a transaction takes longer
// than watchEvery, until stop is called.
func (c *Committer) Watch() (stop func()) {
	db, ok := c.Store.DB().(sqldb.Watched)
	if !ok || !c.Outbox {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			timer := clock.System.NewTimer(watchEvery)
			select {
			case <-timer.C():
				c.look(ctx, db)
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}()
	return cancel
}

// look remembers the session that holds the counter, for the errors of callers.
func (c *Committer) look(ctx context.Context, db sqldb.Watched) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	if holder, _ := db.CounterHolder(ctx); holder != "" { // an error is repeated at the next interval
		c.holder.Store(&holder)
	}
}

// Holder describes the last known session that held the outbox counter.
func (c *Committer) Holder() string {
	if holder := c.holder.Load(); holder != nil {
		return *holder
	}
	return ""
}

// explain returns the error of a caller whose context has ended: a *fault.Locked if the
// committer waits for the lock of another transaction.
func (c *Committer) explain(ctx context.Context) error {
	db := c.Store.DB()
	if watched, ok := db.(sqldb.Watched); ok && db.Dialect().OneWriter() && c.starting.Load() > 0 {
		holder, _ := watched.CounterHolder(context.WithoutCancel(ctx)) // it reads files
		return &fault.Locked{Lock: "database", Holder: holder, Err: ctx.Err()}
	}
	if holder := c.holder.Load(); holder != nil {
		return &fault.Locked{Lock: "outbox counter", Holder: *holder, Err: ctx.Err()}
	}
	return ctx.Err()
}
