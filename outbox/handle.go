package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// patience is the time after which a handler that does not return is abandoned, counted
// from the cancellation of its context.
const patience = 10 * time.Second

// begin handles a batch and commits its outcome.
func (p *Processor) begin(ctx context.Context, c *core.Claim) {
	b := c.Work.(*batch)
	switch {
	case b.unread != nil:
		p.options.OnError(fmt.Errorf("read entries of consumer %s: %w", p.name, b.unread))
		p.commitDecision(ctx, c, b, p.unreadable(b), nil)
	case b.poison:
		message := fmt.Sprintf("%s: %d processes crashed", crashed, b.crashes)
		p.commitDecision(ctx, c, b, p.deadLetter(b, 0, store.StatusQuarantined, message, b.attempts), nil)
	case p.whole:
		p.handleAll(ctx, c, b)
	default:
		p.handleEach(ctx, c, b)
	}
}

// handleAll passes all entries to the handler.
func (p *Processor) handleAll(ctx context.Context, c *core.Claim, b *batch) {
	err := p.attempt(ctx, c, b, b.entries)
	if err != nil {
		p.failed(ctx, c, b, 0, err)
		return
	}
	p.commitDecision(ctx, c, b, p.done(b), nil)
}

// handleEach passes one entry after the other to the handler.
func (p *Processor) handleEach(ctx context.Context, c *core.Claim, b *batch) {
	for i := range b.entries {
		err := context.Cause(ctx)
		if err == nil {
			err = p.attempt(ctx, c, b, b.entries[i:i+1])
		}
		if err != nil {
			p.failed(ctx, c, b, i, err)
			return
		}
	}
	p.commitDecision(ctx, c, b, p.done(b), nil)
}

// attempt calls the handler, and commits what it has added together with the position.
func (p *Processor) attempt(ctx context.Context, c *core.Claim, b *batch, entries []Entry) error {
	handling, additions := core.WithAdditions(ctx)
	result := make(chan error, 1)
	c.Go(func() {
		limits := core.Limits{Timeout: p.options.Timeout, Patience: patience}
		c.Call(handling, limits, func(ctx context.Context) error { return p.handle(ctx, entries) }, func(err error) { result <- err })
	})
	if err := <-result; err != nil {
		return err
	}
	with := additions.Close()
	if len(with) == 0 {
		return nil
	}
	return p.commitWith(ctx, c, b, entries[len(entries)-1].Stamp, with)
}

// uncommitted is the error of a transaction whose result is unknown, or which the
// database could not run. It is not an error of the handler.
type uncommitted struct{ err error }

func (e *uncommitted) Error() string { return "commit position: " + e.err.Error() }
func (e *uncommitted) Unwrap() error { return e.err }

// commitWith commits the functions of a handler together with the position. It returns
// the error of a function as it is, and every other error as an *uncommitted.
func (p *Processor) commitWith(ctx context.Context, c *core.Claim, b *batch, to Stamp, with []func(tx any) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	err := core.Committing([]*core.Claim{c}, func() error {
		return p.outbox.host.Update(ctx, func(run func(...sqldb.Stmt) error) error {
			var lost bool
			stmts := []sqldb.Stmt{p.outbox.store.HoldConsumer(p.name, c.Token, b.from[:], to[:], p.outbox.clock.Now().UTC(), &lost)}
			if b.dead {
				stmts = []sqldb.Stmt{
					p.outbox.store.ExtendConsumer(p.name, c.Token, p.options.Lease, p.outbox.now(), &lost),
					p.outbox.store.DeleteDeadEntry(p.name, to[:]),
				}
			}
			if err := run(stmts...); err != nil {
				return err
			}
			if lost {
				return core.ErrLost
			}
			return nil
		}, with)
	})
	if err == nil {
		if !b.dead {
			b.from, b.attempts, b.crashes = to, 0, 0
		}
		return nil
	}
	if failure := core.Addition(err); failure != nil {
		return failure
	}
	return &uncommitted{err}
}

// failed decides about the entry with index i, whose attempt has failed with err. The
// entries before it are handled.
func (p *Processor) failed(ctx context.Context, c *core.Claim, b *batch, i int, err error) {
	var lost *uncommitted
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, core.ErrStopping):
		p.commitDecision(ctx, c, b, b.through(i), nil)
	case cause != nil, errors.As(err, &lost), errors.Is(err, core.ErrLost):
		if cause == nil {
			cause = err
		}
		p.commitDecision(ctx, c, b, b.through(i), cause)
	default:
		c.Failed = true
		p.commitDecision(ctx, c, b, p.decide(b, i, err), nil)
	}
}
