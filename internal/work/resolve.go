package work

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// A claim whose outcome may or may not be written is resolved by the process that made it. The
// process reads which items its lease still holds and returns them to their queue. The process
// is alive, so this does not count as a crash.

// Lose finishes a claim that this process could not keep. If no other process has claimed the
// item, the item is returned. Lose does not wait.
func (c *committer) Lose(i *Item, cause error, then func(error)) {
	c.Resolve([]*Decided{{Item: i, then: then}}, cause)
}

// Resolve returns the items of claims whose outcome was not written, or may not have been, and
// then reports cause to each. It does not wait. It retries until the database responds or the
// runner is closed.
func (c *committer) Resolve(group []*Decided, cause error) {
	for _, d := range group {
		d.Inline = false // the claim is not kept
	}
	c.resolver.Go(func(ctx context.Context) error { return c.GiveBack(ctx, group, cause) }, func(err error) {
		for _, d := range group {
			d.then(errors.Join(cause, err))
		}
	})
}

// resolveClaim returns the items of a claim whose COMMIT got no response.
func (c *committer) resolveClaim(token string) {
	c.resolver.Look(func(ctx context.Context) error { return c.giveBackLease(ctx, token) }, func(error) {}, c.runner.options.Lease/2)
}

// GiveBack returns the items of a group that its leases still hold. The locks on the items, if
// the kind has them, and on the leases wait for a transaction of this process that is still
// being committed.
func (c *committer) GiveBack(ctx context.Context, group []*Decided, cause error) error {
	r := c.runner
	mine := map[string][]string{}
	held := make([]store.Held, len(group))
	for i, d := range group {
		held[i] = d.held()
		mine[d.Token] = append(mine[d.Token], d.ID)
	}
	tokens := make([]string, 0, len(mine))
	for token := range mine {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	var wakeups Wakeups
	err := r.Transact(ctx, func(tx sqldb.Tx) error {
		if r.kind.Rows != nil {
			return tx.Run(ctx, c.returns(held, cause)...)
		}
		if r.kind.Lock != nil {
			if err := tx.Run(ctx, r.kind.Lock(group, true)...); err != nil {
				return err
			}
		}
		var back []store.Held
		for _, token := range tokens {
			lost, err := r.holds(ctx, tx, token, mine[token])
			if err != nil {
				return err
			}
			for _, id := range lost {
				back = append(back, store.Held{ID: id, Token: token})
			}
		}
		stmts := append(c.returns(back, cause), r.Runtime.Store.DropInterrupts(held))
		if empty := c.emptyLeases(group); len(empty) > 0 {
			stmts = append(stmts, r.Runtime.Store.DropLeases(empty))
		}
		return tx.Run(ctx, stmts...)
	})
	if err != nil {
		return fmt.Errorf("return %ss: %w", r.kind.Name, err)
	}
	c.forget(group)
	for _, d := range group {
		wakeups.Woken(d.Queue)
	}
	r.Publish(&wakeups)
	return nil
}

// returns returns the statements that return claims. After an error other than an unavailable
// database the items are postponed and show the error, so that it is not repeated in a loop.
func (c *committer) returns(claims []store.Held, cause error) (stmts []sqldb.Stmt) {
	switch {
	case len(claims) == 0:
		return nil
	case core.Immediate(cause):
		return c.runner.ready(claims)
	}
	for _, h := range claims {
		stmts = append(stmts, c.runner.postpone(h, edge.Message(cause.Error()), c.runner.postponed())...)
	}
	return stmts
}

// holds locks a lease of this process and returns which of the given items it still holds. If
// of is nil, it returns all items of the lease.
func (r *Runner) holds(ctx context.Context, tx sqldb.Tx, token string, of []string) ([]string, error) {
	var ids []string
	err := tx.Run(ctx,
		r.Runtime.Store.TakeLease(token, func(string) {}),
		r.family().HeldBy(r.ID, func(i store.LeasedItem) {
			if i.Token == token && (of == nil || slices.Contains(of, i.ID)) {
				ids = append(ids, i.ID)
			}
		}),
	)
	return ids, err
}

// giveBackLease returns all items of a lease, without counting a crash, and removes it.
func (c *committer) giveBackLease(ctx context.Context, token string) error {
	r := c.runner
	var wakeups Wakeups
	err := r.Transact(ctx, func(tx sqldb.Tx) error {
		found := false
		if err := tx.Run(ctx, r.Runtime.Store.TakeLease(token, func(string) { found = true })); err != nil || !found {
			return err
		}
		return r.reapOwn(ctx, tx, token, &wakeups)
	})
	if err != nil {
		return fmt.Errorf("return %ss: %w", r.kind.Name, err)
	}
	r.Publish(&wakeups)
	return nil
}
