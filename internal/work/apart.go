package work

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// CommitWith commits an outcome that has functions of the application, in a transaction
// of its own: such a function may wait for a lock, and no other outcome may wait for it.
// It tries again while the database is away, for about as long as the lease lasts. It
// waits for the commit. The error is core.ErrLost if the claim is no longer held, and a
// *core.AdditionError if a function failed. It is core.ErrTaken if a function has cancelled
// the item: its rows are committed, and the claim is to be released.
func (c *committer) CommitWith(ctx context.Context, d *Decided) error {
	return c.persist(ctx, func() error {
		var news News
		err := c.holding([]*Decided{d}, func() error { return c.updateWith(ctx, d, &news) })
		switch {
		case err != nil:
		case d.Taken: // by its own function: the row is committed, and the claim is to be ended
			err = core.ErrTaken
		default:
			c.forget([]*Decided{d})
			c.runner.Publish(&news)
		}
		return err
	})
}

// CommitApart commits a decision by a transaction of the kind, as CommitWith does.
func (c *committer) CommitApart(ctx context.Context, d *Decided, commit func(ctx context.Context, a *Apart) error) error {
	return c.persist(ctx, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
		defer cancel()
		a := c.Apart(d)
		err := commit(ctx, a)
		if err == nil {
			a.Committed()
		}
		return err
	})
}

// persist calls commit again while the database is away, for about as long as the lease
// lasts.
func (c *committer) persist(ctx context.Context, commit func() error) error {
	until := clock.System.Now().Add(c.runner.options.Lease)
	for attempt := 1; ; attempt++ {
		err := commit()
		if err == nil || !repeatable(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

func (c *committer) updateWith(ctx context.Context, d *Decided, news *News) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return c.runner.eng.Update(ctx, func(tx *perdure.Tx) error {
		runner, err := host.In(tx).Runner()
		if err != nil {
			return err
		}
		run := func(stmts ...sqldb.Stmt) error { return runner.Run(tx.Context(), stmts...) }
		if err := c.check(run, d); err != nil {
			return err
		}
		if !d.Void { // otherwise it runs again, and this run counts for nothing
			if err := core.RunAdditions(tx, d.With); err != nil {
				return err
			}
			if err := host.In(tx).Flush(); err != nil {
				return err
			}
			if err := c.ownTaken(run, d); err != nil || d.Taken {
				return err
			}
		}
		return host.In(tx).Attach(nil, c.statements(d, news)...)
	})
}

// ownTaken marks a decision whose own functions have cancelled the item. Its outcome is
// dropped, and its rows are committed.
func (c *committer) ownTaken(run func(...sqldb.Stmt) error, d *Decided) error {
	if c.runner.kind.Rows != nil {
		return nil
	}
	return run(c.runner.Runtime.Store.Interrupted([]string{d.Token}, func(h store.Held) { d.Taken = d.Taken || h.ID == d.ID }))
}

// check verifies the claim of a decision in a transaction of its own.
func (c *committer) check(run func(...sqldb.Stmt) error, d *Decided) error {
	if _, err := c.verify(run, []*Decided{d}, 0, true); err != nil {
		return err
	}
	if d.Stale {
		return d.loss()
	}
	return nil
}

// statements returns the statements of a decision that has its own transaction.
func (c *committer) statements(d *Decided, news *News) []sqldb.Stmt {
	group := []*Decided{d}
	stmts := c.write(group, nil, news)
	if empty := c.emptied(group); len(empty) > 0 {
		stmts = append(stmts, c.runner.Runtime.Store.DropLeases(empty))
	}
	return stmts
}

// Apart is a decision that is committed by a transaction of the kind. Its methods are
// called in the order in which they are here.
type Apart struct {
	committer *committer
	decided   *Decided
	news      News
}

// Apart returns a decision that is committed by a transaction of the kind.
func (c *committer) Apart(d *Decided) *Apart { return &Apart{committer: c, decided: d} }

// Verify verifies the claim under a lock. It is core.ErrLost if it is no longer held.
func (a *Apart) Verify(run func(...sqldb.Stmt) error) error {
	a.news = News{}
	return a.committer.check(run, a.decided)
}

// Write records the decision.
func (a *Apart) Write(run func(...sqldb.Stmt) error) error {
	return run(a.committer.statements(a.decided, &a.news)...)
}

// Committed is called after the commit.
func (a *Apart) Committed() {
	a.committer.forget([]*Decided{a.decided})
	a.committer.runner.Publish(&a.news)
}

// Repeatable reports whether a transaction failed without a trace, because the database
// was away or another transaction was in its way.
func Repeatable(err error) bool { return repeatable(err) }
