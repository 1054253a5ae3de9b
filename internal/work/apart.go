package work

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/unit"
)

// CommitWith commits an outcome that has functions of the application, in a transaction
// of its own: such a function may wait for a lock, and no other outcome may wait for it.
// It tries again while the database is away, for about as long as the lease lasts. It
// waits for the commit. The error is core.ErrLost if the claim is no longer held, and a
// *core.AdditionError if a function failed.
func (c *committer) CommitWith(ctx context.Context, d *Decided) error {
	until := clock.System.Now().Add(c.runner.options.Lease)
	for attempt := 1; ; attempt++ {
		var news News
		err := c.updateWith(ctx, d, &news)
		if err == nil {
			c.forget([]*Decided{d})
			c.runner.Publish(&news)
		}
		if err == nil || !repeatable(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

func (c *committer) updateWith(ctx context.Context, d *Decided, news *News) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	group := []*Decided{d}
	return c.runner.eng.Update(ctx, func(tx *perdure.Tx) error {
		run, err := tx.Runner()
		if err != nil {
			return err
		}
		if _, err := c.verify(tx.Context(), run, group, 0); err != nil {
			return err
		}
		if d.Stale {
			return d.loss()
		}
		if !d.Void { // otherwise it runs again, and this run counts for nothing
			if err := core.RunAdditions(tx, d.With); err != nil {
				return err
			}
		}
		stmts := c.write(group, nil, news)
		if empty := c.emptied(group); len(empty) > 0 {
			stmts = append(stmts, c.runner.Runtime.Store.DropLeases(empty))
		}
		return tx.Attach(nil, stmts...)
	})
}

// Repeatable reports whether a transaction failed without a trace, because the database
// was away or another transaction was in its way.
func Repeatable(err error) bool { return repeatable(err) }
