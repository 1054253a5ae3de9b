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

// CommitWith commits an outcome that has functions of the application, in its own transaction:
// such a function may wait for a lock, and other outcomes must not wait for it. It retries
// while the database is unavailable, for about the length of a lease. It waits for the commit.
// The error is core.ErrLost if the claim was lost, and a *core.AdditionError if a function
// failed. It is core.ErrTaken if a function has cancelled the item: the function's rows are
// committed, and the caller must release the claim.
func (c *committer) CommitWith(ctx context.Context, d *Decided) error {
	return c.persist(ctx, func() error {
		var wakeups Wakeups
		err := c.holding([]*Decided{d}, func() error { return c.updateWith(ctx, d, &wakeups) })
		switch {
		case err != nil:
		case d.Taken: // cancelled by its own function: the rows are committed, and the claim must be released
			err = core.ErrTaken
		default:
			c.forget([]*Decided{d})
			c.runner.Publish(&wakeups)
		}
		return err
	})
}

// CommitApart is like CommitWith, but commits the decision in a transaction of the kind.
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

// persist retries commit while the database is unavailable, for about the length of a lease.
func (c *committer) persist(ctx context.Context, commit func() error) error {
	until := clock.System.Now().Add(c.runner.options.Lease)
	for attempt := 1; ; attempt++ {
		err := commit()
		if err == nil || !repeatable(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Yield(ctx, c.runner.Runtime.DB, attempt, err)
	}
}

func (c *committer) updateWith(ctx context.Context, d *Decided, wakeups *Wakeups) error {
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
		if !d.Void { // otherwise the item runs again, and this run has no effect
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
		return host.In(tx).Attach(nil, c.statements(d, wakeups)...)
	})
}

// ownTaken marks a decision whose own functions have cancelled the item. Its outcome is
// dropped, and the rows of the functions are committed.
func (c *committer) ownTaken(run func(...sqldb.Stmt) error, d *Decided) error {
	if c.runner.kind.Rows != nil {
		return nil
	}
	return run(c.runner.Runtime.Store.Interrupted([]string{d.Token}, func(h store.Held) { d.Taken = d.Taken || h.ID == d.ID }))
}

// check verifies the claim of a decision that has its own transaction.
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
func (c *committer) statements(d *Decided, wakeups *Wakeups) []sqldb.Stmt {
	group := []*Decided{d}
	stmts := c.write(group, nil, wakeups)
	if empty := c.emptyLeases(group); len(empty) > 0 {
		stmts = append(stmts, c.runner.Runtime.Store.DropLeases(empty))
	}
	return stmts
}

// Apart is a decision that is committed in a transaction of the kind. The methods must be
// called in the order in which they are declared.
type Apart struct {
	committer *committer
	decided   *Decided
	wakeups   Wakeups
}

// Apart returns a decision that is committed in a transaction of the kind.
func (c *committer) Apart(d *Decided) *Apart { return &Apart{committer: c, decided: d} }

// Verify verifies the claim under a lock. It returns core.ErrLost if the claim was lost.
func (a *Apart) Verify(run func(...sqldb.Stmt) error) error {
	a.wakeups = Wakeups{}
	return a.committer.check(run, a.decided)
}

// Write records the decision.
func (a *Apart) Write(run func(...sqldb.Stmt) error) error {
	return run(a.committer.statements(a.decided, &a.wakeups)...)
}

// Committed must be called after the commit.
func (a *Apart) Committed() {
	a.committer.forget([]*Decided{a.decided})
	a.committer.runner.Publish(&a.wakeups)
}

// Repeatable reports whether a transaction failed without any effect, because the database was
// unavailable or another transaction conflicted.
func Repeatable(err error) bool { return repeatable(err) }
