package outbox

import (
	"context"
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
	// Worker is the process that handles entries now. It is empty if none does.
	Worker string
	// Served is true if a process has handled entries with Handle or HandleBatches.
	Served bool
	// Attempts is the number of failed attempts of the first entry after the position.
	// RetryAt is the time of the next attempt, zero if none is scheduled. Error is the
	// error of the last one.
	Attempts int
	RetryAt  time.Time
	Error    string
	// Stopped is true if the consumer waits for an operator, usually at a dead letter.
	Stopped bool
	// Dead is the number of dead letters.
	Dead int
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
		return []sqldb.Stmt{o.store.Consumers(o.now(), func(c store.Consumer) { all = append(all, consumerStatus(c)) })}
	})
	if err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	return all, nil
}

func consumerStatus(c store.Consumer) ConsumerStatus {
	s := ConsumerStatus{
		Name: c.Name, Created: c.Created, Updated: c.Updated, Worker: c.Worker, Served: c.Served != 0,
		Attempts: c.Attempts, Error: c.Error, Stopped: c.Stopped, Dead: c.Dead,
	}
	copy(s.Position[:], c.Position)
	if c.RetryAt != nil {
		s.RetryAt = c.RetryAt.UTC()
	}
	return s
}

// DeleteConsumer removes a consumer and its dead letters; retention no longer waits for
// it.
func (o *Outbox) DeleteConsumer(ctx context.Context, name string) error {
	err := o.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		if err := tx.Run(ctx, o.store.DeleteConsumer(name), o.store.DeleteDeadEntries(name)); err != nil {
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

// Reset moves the consumer to any stamp from which entries can be read, also backwards. A
// stopped consumer continues there. A process that handles entries of the consumer loses
// its lease: what it has not committed is not counted.
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
	c.outbox.WakeConsumer(c.name)
	return nil
}
