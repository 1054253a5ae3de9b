package work

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// CommitGroup commits outcomes in one transaction and marks stale outcomes. It waits at most
// wait for a locked row; 0 means no limit.
func (c *committer) CommitGroup(group []*Decided, wakeups *Wakeups, wait time.Duration) error {
	return c.holding(group, func() error { return c.commitGroup(context.Background(), group, wakeups, wait, commitTimeout) })
}

// holding runs fn. If the claims are columns of the items' rows, fn locks those rows.
func (c *committer) holding(group []*Decided, fn func() error) error {
	if c.runner.kind.Rows == nil {
		return fn()
	}
	claims := make([]*core.Claim, len(group))
	for i, d := range group {
		claims[i] = d.Claim
	}
	return core.Committing(claims, fn)
}

func (c *committer) commitGroup(ctx context.Context, group []*Decided, wakeups *Wakeups, wait, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	r := c.runner
	tx, err := r.Runtime.DB.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	run := func(stmts ...sqldb.Stmt) error { return tx.Run(ctx, stmts...) }
	taken, err := c.verify(run, group, wait, false)
	if err != nil {
		return err
	}
	var ready, spent []string
	if len(taken) > 0 && r.kind.HandOver != nil {
		if ready, spent, err = r.kind.HandOver(ctx, tx, taken); err != nil {
			return err
		}
	}
	stmts := c.write(group, ready, wakeups)
	if len(taken) > 0 {
		stmts = append(stmts, r.Runtime.Store.DropInterrupts(taken))
	}
	if empty := append(c.emptyLeases(group), spent...); len(empty) > 0 {
		stmts = append(stmts, r.Runtime.Store.DropLeases(empty))
	}
	return tx.Commit(ctx, stmts...)
}

// write returns the statements of a group. The items in ready are returned together with the
// released items.
func (c *committer) write(group []*Decided, ready []string, wakeups *Wakeups) []sqldb.Stmt {
	r := c.runner
	var outcomes, kept []*Decided
	var released []store.Held
	var moved []store.Moved
	var stmts []sqldb.Stmt
	for _, d := range group {
		switch {
		case d.Stale && !slices.Contains(ready, d.ID):
		case d.Stale, d.release:
			released = append(released, d.held())
			if d.lane != "" {
				moved = append(moved, store.Moved{ID: d.ID, Lane: d.lane})
			}
			wakeups.Woken(d.Queue)
			if d.Stale && d.Outcome != nil {
				kept = append(kept, d)
			}
		case d.reason != nil:
			stmts = append(stmts, r.postpone(d.held(), *d.reason, d.delay)...)
			wakeups.At(d.Queue, r.Runtime.Clock.Now().Add(d.delay))
		default:
			outcomes = append(outcomes, d)
		}
	}
	if len(outcomes) > 0 {
		stmts = append(stmts, r.kind.Write(outcomes, wakeups)...)
		stmts = append(stmts, r.receipts(outcomes)...)
	}
	if len(kept) > 0 && r.kind.Keep != nil {
		stmts = append(stmts, r.kind.Keep(kept)...)
	}
	if len(moved) > 0 {
		stmts = append(stmts, r.family().Move(moved))
	}
	if len(released) > 0 {
		stmts = append(stmts, r.ready(released)...)
	}
	return stmts
}

// ready returns the statements that return claims unchanged.
func (r *Runner) ready(claims []store.Held) []sqldb.Stmt {
	if r.kind.Rows != nil {
		return r.kind.Rows.Release(claims)
	}
	ids := make([]string, len(claims))
	for i, h := range claims {
		ids[i] = h.ID
	}
	return []sqldb.Stmt{r.family().Ready(ids)}
}

// postpone returns the statements that return a claim with a delay and a reason.
func (r *Runner) postpone(claim store.Held, reason string, delay time.Duration) []sqldb.Stmt {
	if r.kind.Rows != nil {
		return r.kind.Rows.Postpone(claim, reason, delay)
	}
	return []sqldb.Stmt{r.family().Postpone(claim.ID, reason, delay, r.Runtime.Now()), r.family().Ready([]string{claim.ID})}
}

// verify locks the leases of the group and marks the outcomes whose claim was lost. It returns
// the claims that were revoked. A kind that locks items has them locked before the leases. If
// the outcomes have their own transaction, which may take long (apart), such a kind locks only
// the items. Then neither heartbeats nor other items of the lease wait for the transaction.
func (c *committer) verify(run func(...sqldb.Stmt) error, group []*Decided, wait time.Duration, apart bool) ([]store.Held, error) {
	st, kind := c.runner.Runtime.Store, c.runner.kind
	if kind.Rows != nil {
		return nil, c.holdRows(run, group, wait)
	}
	var tokens []string
	alive, taken := map[string]bool{}, map[store.Held]bool{}
	for _, d := range group {
		if _, known := alive[d.Token]; !known {
			alive[d.Token] = false
			tokens = append(tokens, d.Token)
		}
	}
	stmts := limitLocks(wait)
	share := st.ShareLeases(tokens, func(token string) { alive[token] = true })
	switch locks := kind.Lock; {
	case locks != nil && apart:
		stmts = append(append(stmts, locks(group, true)...), st.FindLeases(tokens, func(token string) { alive[token] = true }))
	case locks != nil:
		stmts = append(append(stmts, locks(group, false)...), share)
	default:
		stmts = append(stmts, share)
	}
	stmts = append(stmts, st.Interrupted(tokens, func(h store.Held) { taken[h] = true }))
	if kind.Verify != nil {
		stmts = append(stmts, kind.Verify(group)...)
	}
	err := run(stmts...)
	var drop []store.Held
	for _, d := range group {
		held := d.held()
		if d.Taken = taken[held] || kind.Gone != nil && kind.Gone(d); d.Taken {
			drop = append(drop, held)
		}
		d.Stale = !alive[d.Token] || d.Taken
	}
	return drop, err
}
