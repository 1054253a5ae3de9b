package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// DeadLetter is an entry that a consumer could not handle. It is a copy: retention may
// have removed the entry itself.
type DeadLetter struct {
	Entry
	// Consumer is the name of the consumer.
	Consumer string
	// Status is "failed" if the handler has returned errors, "quarantined" if its process
	// has crashed, and "retrying" after RetryDead.
	Status string
	// Error is the error of the last attempt, Attempts the number of attempts.
	Error    string
	Attempts int
	// Died is the time at which the entry became a dead letter.
	Died time.Time
}

// DeadLetters returns up to limit dead letters of the consumer after a stamp, in the order
// of their stamps. limit 0 means DefaultLimit. A dead letter that cannot be decoded has an
// empty payload.
func (c *Consumer) DeadLetters(ctx context.Context, after Stamp, limit int) ([]DeadLetter, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	var all []DeadLetter
	err = c.outbox.read(ctx, func() []sqldb.Stmt {
		all = nil
		return []sqldb.Stmt{c.outbox.store.DeadEntries(c.name, after[:], limit, func(d store.DeadEntry) {
			entry, err := decodeEntry(d.Entry)
			if err != nil {
				entry.Payload = Payload{}
			}
			all = append(all, DeadLetter{Entry: entry, Consumer: c.name, Status: d.Status, Error: d.Error, Attempts: d.Attempts, Died: d.Died})
		})}
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return all, nil
}

// RetryDead gives a dead letter all its attempts again. If the consumer has stopped at it,
// the consumer continues with it. Otherwise it is handled out of order, before later
// entries. RetryDead returns a *fault.NotFound if there is no such dead letter.
func (c *Consumer) RetryDead(ctx context.Context, stamp Stamp) error {
	return c.onDead(ctx, "retry", func(ctx context.Context, tx sqldb.Tx) error {
		return c.outbox.store.RetryDead(ctx, tx, c.name, stamp[:], c.outbox.now())
	})
}

// SkipDead removes a dead letter without handling it. If the consumer has stopped at it,
// the consumer continues after it. SkipDead returns a *fault.NotFound if there is no such
// dead letter.
func (c *Consumer) SkipDead(ctx context.Context, stamp Stamp) error {
	return c.onDead(ctx, "skip", func(ctx context.Context, tx sqldb.Tx) error { return c.skipDead(ctx, tx, stamp) })
}

func (c *Consumer) onDead(ctx context.Context, verb string, change func(context.Context, sqldb.Tx) error) error {
	err := c.outbox.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		if err := change(ctx, tx); err != nil {
			return err
		}
		return c.outbox.store.RecordAct(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("%s dead letter of consumer %s: %w", verb, c.name, err)
	}
	c.outbox.WakeConsumer(c.name)
	return nil
}

func (c *Consumer) skipDead(ctx context.Context, run sqldb.Runner, stamp Stamp) error {
	at, err := c.outbox.store.StoppedAtDead(ctx, run, c.name, stamp[:])
	if err != nil {
		return err
	}
	st := c.outbox.store
	stmts := []sqldb.Stmt{st.DeleteDeadEntry(c.name, stamp[:])}
	if at {
		var moved bool
		stmts = append(stmts, st.AdvanceConsumer(c.name, stamp[:], c.outbox.clock.Now().UTC(), &moved))
	}
	return run.Run(ctx, stmts...)
}

// Consumer returns a registered consumer, or a *fault.NotFound. Unlike Register, it registers
// none.
func (o *Outbox) Consumer(ctx context.Context, name string) (*Consumer, error) {
	c := &Consumer{outbox: o, name: name}
	if _, err := c.Position(ctx); err != nil {
		return nil, err
	}
	return c, nil
}
