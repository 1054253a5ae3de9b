package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Consumer is a registered reader of the outbox. Its position is stored in the database,
// and retention does not remove entries that it has not acknowledged.
type Consumer struct {
	outbox *Outbox
	name   string
}

// ConsumerStatus describes a consumer for operators.
type ConsumerStatus struct {
	Name string
	// Position is the last stamp that the consumer acknowledged.
	Position Stamp
	Created  time.Time
	// Updated is the time when the position last changed.
	Updated time.Time
}

// Register returns the consumer with that name. A new consumer starts after the given
// stamp; an existing consumer keeps its position. Register returns a *GapError or a
// *DivergedError if a new consumer cannot start there.
func (o *Outbox) Register(ctx context.Context, name string, from Stamp) (*Consumer, error) {
	if err := edge.Name("consumer", name); err != nil {
		return nil, err
	}
	err := o.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		var known bool
		var state state
		get := o.store.GetConsumer(name, func(store.Consumer) { known = true })
		stmts := append([]sqldb.Stmt{o.store.LockSetting(store.PrunedThrough)}, state.statements(o.store)...)
		if err := tx.Run(ctx, append(stmts, get)...); err != nil || known {
			return err
		}
		if err := state.check(from); err != nil {
			return err
		}
		now := o.clock.Now().UTC()
		return tx.Run(ctx, o.store.InsertConsumer(store.Consumer{Name: name, Position: from[:], Created: now, Updated: now}))
	})
	if err != nil {
		return nil, fmt.Errorf("register consumer %s: %w", name, err)
	}
	return &Consumer{outbox: o, name: name}, nil
}

// Consumers returns all registered consumers, sorted by name.
func (o *Outbox) Consumers(ctx context.Context) ([]ConsumerStatus, error) {
	var all []ConsumerStatus
	err := o.read(ctx, func() []sqldb.Stmt {
		all = nil
		return []sqldb.Stmt{o.store.Consumers(func(c store.Consumer) { all = append(all, consumerStatus(c)) })}
	})
	if err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	return all, nil
}

func consumerStatus(c store.Consumer) ConsumerStatus {
	s := ConsumerStatus{Name: c.Name, Created: c.Created, Updated: c.Updated}
	copy(s.Position[:], c.Position)
	return s
}

// DeleteConsumer removes a consumer; retention no longer waits for it.
func (o *Outbox) DeleteConsumer(ctx context.Context, name string) error {
	err := o.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		if err := tx.Run(ctx, o.store.DeleteConsumer(name)); err != nil {
			return err
		}
		return o.store.RecordAct(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("delete consumer: %w", err)
	}
	return nil
}

// Name returns the consumer's name.
func (c *Consumer) Name() string { return c.name }

// Position returns the last stamp that the consumer acknowledged.
func (c *Consumer) Position(ctx context.Context) (Stamp, error) {
	var position Stamp
	get := c.outbox.store.GetConsumer(c.name, func(row store.Consumer) { copy(position[:], row.Position) })
	get.Done = sqldb.One(&fault.NotFound{Kind: "consumer", ID: c.name})
	if err := c.outbox.read(ctx, func() []sqldb.Stmt { return []sqldb.Stmt{get} }); err != nil {
		return Stamp{}, fmt.Errorf("read position: %w", err)
	}
	return position, nil
}

// Ack acknowledges all entries up to the stamp. The position only moves forward; an older
// stamp changes nothing. Ack returns a *DivergedError for a stamp that no entry has had
// yet: otherwise the consumer would skip the entry that gets it later.
func (c *Consumer) Ack(ctx context.Context, stamp Stamp) error {
	err := c.outbox.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		var moved, known bool
		var state state
		advance := c.outbox.store.AdvanceConsumer(c.name, stamp[:], c.outbox.clock.Now().UTC(), &moved)
		get := c.outbox.store.GetConsumer(c.name, func(store.Consumer) { known = true })
		if err := tx.Run(ctx, append(state.statements(c.outbox.store), advance, get)...); err != nil {
			return err
		}
		if !known {
			return &fault.NotFound{Kind: "consumer", ID: c.name}
		}
		return state.given(stamp)
	})
	if err != nil {
		return fmt.Errorf("acknowledge %s: %w", stamp, err)
	}
	return nil
}

// Reset moves the consumer to any stamp from which entries can be read, also backwards.
func (c *Consumer) Reset(ctx context.Context, stamp Stamp) error {
	err := c.outbox.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		var state state
		stmts := append([]sqldb.Stmt{c.outbox.store.LockSetting(store.PrunedThrough)}, state.statements(c.outbox.store)...)
		if err := tx.Run(ctx, stmts...); err != nil {
			return err
		}
		if err := state.check(stamp); err != nil {
			return err
		}
		if err := tx.Run(ctx, c.outbox.store.ResetConsumer(c.name, stamp[:], c.outbox.clock.Now().UTC())); err != nil {
			return err
		}
		return c.outbox.store.RecordAct(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("reset consumer %s: %w", c.name, err)
	}
	return nil
}

// Consume calls handle for every entry after the consumer's position, in order, and
// acknowledges each batch that was handled. It returns when ctx is done, the engine is
// closed, or handle fails. Entries that were handled before are acknowledged. An entry
// may be handled twice if the process crashes before it is acknowledged, so handle must
// be idempotent. The stamp is the idempotency key.
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
