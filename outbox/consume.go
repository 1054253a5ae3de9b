package outbox

import (
	"context"
	"errors"
	"fmt"
)

// Consume calls handle for every entry after the consumer's position, in order, and
// acknowledges each batch that was handled. It returns when ctx is done, the engine is
// closed, or handle fails. Entries that were handled before are acknowledged. An entry
// may be handled twice if the process crashes before it is acknowledged, so handle must
// be idempotent. The stamp is the idempotency key.
//
// Consume is for one process. Two processes that consume under one name both handle all
// entries. Handle has a lease, retries and dead letters.
func (c *Consumer) Consume(ctx context.Context, options *TailOptions, handle func(context.Context, Entry) error) error {
	from, err := c.Position(ctx)
	if err != nil {
		return err
	}
	for batch, err := range c.outbox.batches(ctx, from, options) {
		if err != nil {
			return err
		}
		done, err := handleBatch(ctx, batch, handle)
		if done > 0 {
			err = errors.Join(err, c.Ack(context.WithoutCancel(ctx), batch[done-1].Stamp))
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// handleBatch handles entries up to the first failure and returns the number of handled
// entries.
func handleBatch(ctx context.Context, batch []Entry, handle func(context.Context, Entry) error) (int, error) {
	for i, entry := range batch {
		if err := handle(ctx, entry); err != nil {
			return i, fmt.Errorf("handle entry %s: %w", entry.Stamp, err)
		}
	}
	return len(batch), nil
}
