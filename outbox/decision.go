package outbox

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// decision is the outcome of a batch.
type decision struct {
	to                Stamp // the new position
	attempts, crashes int
	limit             int
	delay             *time.Duration // until the next attempt
	message           *string
	stopped           bool
	// deadEntry is the entry that becomes a dead letter after tried attempts, with status as
	// its status.
	deadEntry *Entry
	status    string
	tried     int
	// gone is set if a dead letter was handled: it is removed.
	gone bool
}

// untouched is the decision that changes nothing.
func (b *batch) untouched() decision { return b.through(0) }

// through is the decision that the first n entries are handled, and nothing else.
func (b *batch) through(n int) decision {
	d := decision{to: b.from, attempts: b.attempts, crashes: b.crashes, limit: b.limit}
	if n > 0 && b.entries[n-1].Stamp.Compare(b.from) > 0 {
		d.to, d.attempts, d.crashes = b.entries[n-1].Stamp, 0, 0
	}
	return d
}

// done is the decision that all entries are handled. A limited batch doubles.
func (p *Processor) done(b *batch) decision {
	if b.dead {
		d := b.untouched()
		d.gone = true
		return d
	}
	d := b.through(len(b.entries))
	d.attempts, d.crashes = 0, 0
	if d.limit *= 2; d.limit >= p.options.Batch {
		d.limit = 0
	}
	return d
}

// decide returns the decision after the entry with index i has failed: another attempt,
// or a dead letter.
func (p *Processor) decide(b *batch, i int, err error) decision {
	d := b.through(i)
	attempts := 1
	if i == 0 {
		attempts = b.attempts + 1
	}
	message := edge.Message(err.Error())
	delay, again := p.options.Retry.Decide(attempts, err, p.options.Random())
	switch {
	case p.whole && len(b.entries) > 1:
		// Which entry has failed is not known: they are retried one by one.
		if !again {
			attempts, delay = 0, 0
		}
		d.limit = 1
	case !again:
		return p.deadLetter(b, i, store.StatusFailed, message, attempts)
	}
	d.attempts, d.delay, d.message = attempts, &delay, &message
	return d
}

// deadLetter is the decision that the entry with index i becomes a dead letter.
func (p *Processor) deadLetter(b *batch, i int, status, message string, tried int) decision {
	d := b.through(i)
	d.deadEntry, d.status, d.tried = &b.entries[i], status, tried
	d.message = &message
	switch {
	case b.dead: // it stays one
	case p.options.ContinueAfterDead:
		d.to, d.attempts, d.crashes = b.entries[i].Stamp, 0, 0
	default:
		d.attempts, d.stopped = tried, true
	}
	return d
}

// unreadable is the decision about entries that cannot be read: the consumer waits, or it
// stops if waiting does not help.
func (p *Processor) unreadable(b *batch) decision {
	d := b.untouched()
	message, delay := edge.Message(b.unread.Error()), core.Postponement(p.options.Random)
	d.message, d.stopped = &message, b.stop
	if !b.stop {
		d.delay = &delay
	}
	return d
}

// commitDecision commits the decision about a batch and ends its claim, with cause as the error of
// the claim. It retries until the database responds, and does not wait.
func (p *Processor) commitDecision(ctx context.Context, c *core.Claim, b *batch, d decision, cause error) {
	ctx = context.WithoutCancel(ctx)
	tries, lost := 0, false
	p.resolver.Go(func(until context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		defer context.AfterFunc(until, cancel)()
		tries++
		return core.Committing([]*core.Claim{c}, func() (err error) {
			lost, err = p.commitOnce(ctx, c, b, d)
			return err
		})
	}, func(err error) {
		if cause == nil {
			cause = err
		}
		if cause == nil && lost && tries == 1 { // otherwise an earlier try may have committed
			cause = core.ErrLost
		}
		c.End(cause)
	})
}

// commitOnce commits a decision. lost is true if the lease was lost: the decision then has
// no effect.
func (p *Processor) commitOnce(ctx context.Context, c *core.Claim, b *batch, d decision) (lost bool, err error) {
	err = p.outbox.once(ctx, sqldb.Urgent, func(ctx context.Context, tx sqldb.Tx) error {
		if err := tx.Run(ctx, p.ending(c, b, d, &lost)); err != nil || lost {
			return err
		}
		return tx.Run(ctx, p.consequences(b, d)...)
	})
	return lost, sqldb.Bare(err)
}

// ending returns the statement that ends the lease.
func (p *Processor) ending(c *core.Claim, b *batch, d decision, lost *bool) sqldb.Stmt {
	if b.dead { // the state of the consumer does not change
		release := p.outbox.store.ReleaseConsumer(p.name, c.Token)
		release.Done = func(n int64) error { *lost = n == 0; return nil }
		return release
	}
	o := store.ConsumerOutcome{
		Name: p.name, Token: c.Token, From: b.from[:], To: d.to[:], Attempts: d.attempts, Crashes: d.crashes, BatchLimit: d.limit,
		Delay: d.delay, Error: d.message, Stopped: d.stopped,
	}
	if d.to != b.from {
		moved := p.outbox.clock.Now().UTC()
		o.Moved = &moved
	}
	if d.deadEntry != nil && !d.stopped {
		o.Error = nil // it is in the dead letter
	}
	return p.outbox.store.CommitConsumer(o, p.outbox.now(), lost)
}

// consequences returns the statements on dead letters.
func (p *Processor) consequences(b *batch, d decision) []sqldb.Stmt {
	st := p.outbox.store
	switch {
	case b.dead && d.gone:
		return []sqldb.Stmt{st.DeleteDeadEntry(p.name, b.entries[0].Stamp[:])}
	case b.dead && d.deadEntry != nil:
		return []sqldb.Stmt{st.FailDeadEntry(p.name, d.deadEntry.Stamp[:], d.status, *d.message, d.tried, p.outbox.now())}
	case b.dead:
		var delay time.Duration
		if d.delay != nil {
			delay = *d.delay
		}
		return []sqldb.Stmt{st.RetryDeadEntry(p.name, b.entries[0].Stamp[:], d.attempts, d.message, delay, p.outbox.now())}
	case d.deadEntry != nil:
		return st.InsertDeadEntry(p.name, d.deadEntry.Stamp[:], d.status, *d.message, d.tried, p.outbox.clock.Now().UTC())
	}
	return nil
}
