package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// batch is the entries that a processor handles under one lease.
type batch struct {
	from    Stamp // the position, as it is stored
	entries []Entry
	// attempts and crashes are those of the first entry.
	attempts, crashes int
	// limit is the stored limit of a batch, 0 if there is none.
	limit int
	// dead is set if the only entry is a dead letter that is retried.
	dead bool
	// poison is set if the first entry has crashed too many processes.
	poison bool
	// unread is the reason why entries cannot be read. If stop is set, it cannot be read
	// later either.
	unread error
	stop   bool
}

// claim takes the lease of the consumer, unless another process has it or there is
// nothing to handle.
func (p *Processor) claim(ctx context.Context, _ int, lease time.Duration) ([]*core.Claim, error) {
	wait, ok, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	if !ok || wait > 0 {
		p.quiet.remember(p.outbox.clock.Now(), wait, ok)
		return nil, nil
	}
	tx, err := p.outbox.begin(ctx, sqldb.Claim)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	b, err := p.lease(ctx, tx)
	if sqldb.IsCertification(err) { // another node has the consumer, or has just changed it
		return nil, nil
	}
	if err != nil || b == nil {
		return nil, sqldb.Bare(err)
	}
	l := store.ConsumerLease{Name: p.name, Token: newID(), Worker: p.id, Lease: lease, Crashes: b.crashes, BatchLimit: b.limit}
	if err := tx.Commit(ctx, p.outbox.store.LeaseConsumer(l, p.outbox.now())); sqldb.IsCertification(err) {
		return nil, nil
	} else if err != nil {
		return nil, sqldb.Bare(err) // the next claim finds out whether the lease was written
	}
	return []*core.Claim{{ID: p.name, Token: l.Token, Work: b}}, nil
}

// lease locks the consumer and reads what to handle. It returns nil if there is nothing,
// or if another process has the consumer.
func (p *Processor) lease(ctx context.Context, tx sqldb.Tx) (*batch, error) {
	var c store.ConsumerState
	found := false
	lock := p.outbox.store.LockConsumer(p.name, p.outbox.now(), func(row store.ConsumerState) { c, found = row, true })
	if err := tx.Run(ctx, lock); err != nil || !found {
		return nil, err
	}
	b := &batch{attempts: c.Attempts, crashes: c.Crashes, limit: c.BatchLimit}
	copy(b.from[:], c.Position)
	// A lease of this processor is not of use: nothing runs while it claims.
	if c.Token != "" && c.Worker != p.id {
		if c.Expires != nil && c.Expires.After(c.Now) || !p.worker.MayReap() {
			return nil, nil
		}
		b.poison = b.crashes+1 >= p.options.MaxCrashes && b.limit == 1
		b.crashes++
		if b.crashes >= min(2, p.options.MaxCrashes) {
			b.limit = 1
		}
	}
	if found, err := p.retried(ctx, tx, b); err != nil || found {
		return b, err
	}
	if c.Stopped || c.RetryAt != nil && c.RetryAt.After(c.Now) {
		return nil, nil
	}
	if err := p.fill(ctx, tx, b); err != nil {
		return nil, err
	}
	if len(b.entries) == 0 && b.unread == nil {
		return nil, nil
	}
	return b, nil
}

// retried adds the dead letter that is retried now, if there is one.
func (p *Processor) retried(ctx context.Context, tx sqldb.Tx, b *batch) (found bool, err error) {
	var dead store.DeadEntry
	due := p.outbox.store.DueDeadEntry(p.name, p.outbox.now(), func(d store.DeadEntry) { dead, found = d, true })
	if err := tx.Run(ctx, due); err != nil || !found {
		return false, err
	}
	entry, err := decodeEntry(dead.Entry)
	b.dead, b.attempts, b.unread, b.poison = true, dead.Attempts, err, false
	b.entries = []Entry{entry}
	if err != nil {
		return true, nil
	}
	// If this process crashes, the dead letter waits for the operator again.
	return true, tx.Run(ctx, p.outbox.store.FailDeadEntry(p.name, dead.Stamp, store.StatusQuarantined, crashed, dead.Attempts, p.outbox.now()))
}

// crashed is the error of an entry whose process crashed.
const crashed = "the process crashed while it handled the entry"

// fill adds the entries after the position.
func (p *Processor) fill(ctx context.Context, tx sqldb.Tx, b *batch) error {
	limit := p.options.Batch
	if b.limit > 0 {
		limit = min(limit, b.limit)
	}
	var now state
	list := p.outbox.store.ListEntries(b.from[:], limit, func(row store.Entry) error {
		if b.unread != nil {
			return nil
		}
		entry, err := decodeEntry(row)
		if err != nil {
			b.unread = err
			return nil
		}
		b.entries = append(b.entries, entry)
		return nil
	})
	if err := tx.Run(ctx, append(now.statements(p.outbox.store), list)...); err != nil {
		return err
	}
	if err := now.check(b.from); err != nil {
		b.unread, b.stop, b.entries = err, true, nil
	}
	if len(b.entries) > 0 {
		b.unread = nil // the entries before come first
	}
	return nil
}

// extend renews the lease.
func (p *Processor) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) (gone []*core.Claim, err error) {
	lost := make([]bool, len(claims))
	err = p.outbox.once(ctx, sqldb.Urgent, func(ctx context.Context, tx sqldb.Tx) error {
		for i, c := range claims {
			if err := tx.Run(ctx, p.outbox.store.ExtendConsumer(p.name, c.Token, lease, p.outbox.now(), &lost[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, sqldb.Bare(err)
	}
	for i, c := range claims {
		if lost[i] {
			gone = append(gone, c)
		}
	}
	return gone, nil
}

// release ends leases under which nothing was handled.
func (p *Processor) release(ctx context.Context, claims []*core.Claim) error {
	var errs []error
	for _, c := range claims {
		b := c.Work.(*batch)
		_, err := p.commitOnce(ctx, c, b, b.untouched())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// next returns the time until entries can be handled.
func (p *Processor) next(ctx context.Context) (time.Duration, bool, error) {
	if wait, ok, known := p.quiet.take(p.outbox.clock.Now()); known {
		return wait, ok, nil
	}
	return p.look(ctx)
}

// look reads the time until entries can be handled.
func (p *Processor) look(ctx context.Context) (wait time.Duration, ok bool, err error) {
	var n store.ConsumerNext
	found := false
	err = p.outbox.once(ctx, sqldb.Read, func(ctx context.Context, tx sqldb.Tx) error {
		return tx.Run(ctx, p.outbox.store.NextOfConsumer(p.name, p.outbox.now(), func(row store.ConsumerNext) { n, found = row, true }))
	})
	if err != nil || !found {
		return 0, false, sqldb.Bare(err)
	}
	var due *time.Time
	if n.Unread != nil && !n.Stopped {
		due = &n.Now
		if n.RetryAt != nil {
			due = n.RetryAt
		}
	}
	if n.Retried != nil && (due == nil || n.Retried.Before(*due)) {
		due = n.Retried
	}
	if due == nil {
		return 0, false, nil
	}
	wait = due.Sub(n.Now)
	if n.Expires != nil && n.Worker != p.id {
		wait = max(wait, n.Expires.Sub(n.Now))
	}
	return wait, true, nil
}

// quiet remembers that a claim has just found nothing to do, so that the dispatcher does
// not read the same again. A wake-up makes it forget.
type quiet struct {
	mu    sync.Mutex
	known bool
	at    time.Time
	wait  time.Duration
	ok    bool
}

func (q *quiet) remember(now time.Time, wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known, q.at, q.wait, q.ok = true, now, wait, ok
}

func (q *quiet) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known = false
}

// take returns what was remembered within the last second, once.
func (q *quiet) take(now time.Time) (wait time.Duration, ok, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	known = q.known && now.Sub(q.at) < time.Second
	q.known = false
	return q.wait - now.Sub(q.at), q.ok, known
}
