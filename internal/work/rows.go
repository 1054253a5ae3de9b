package work

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Rows are the statements of a kind whose claims are columns of its rows instead of
// leases. The reason is its interface: functions of the database that a restricted role
// may call. Every claim has its own token, and every statement is guarded by it.
type Rows interface {
	// Claim returns the claims of crashed processes and claims due items, including suspects
	// whose batch limit is at least least.
	Claim(ctx context.Context, tx sqldb.Tx, c store.Claim, least int) ([]store.Claimed, []Crash, error)
	// Extend renews claims and finds those that are still held.
	Extend(claims []store.Held, lease time.Duration, found func(id string)) []sqldb.Stmt
	// Hold locks the items of a group and finds those that are still held. It also runs the
	// functions that must run before the outcomes are written.
	Hold(group []*Decided, found func(id string)) []sqldb.Stmt
	// Release returns claims unchanged, Postpone returns one with a delay.
	Release(claims []store.Held) []sqldb.Stmt
	Postpone(claim store.Held, reason string, delay time.Duration) []sqldb.Stmt
}

// takeRows claims due items, including as many suspects as may run together. Suspects use at
// most half of the slots, so that they do not hold up other items.
func (q *Queue) takeRows(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	r := q.runner
	var items []*Item
	var crashes []Crash
	err := r.Transact(ctx, func(tx sqldb.Tx) error {
		claimed, lost, err := r.kind.Rows.Claim(ctx, tx, q.newClaim(limit, lease), Lowest(q.least()))
		if err != nil {
			return err
		}
		crashes = lost
		var surplus []store.Held
		if items, surplus = q.admit(claimed); len(surplus) == 0 {
			return nil
		}
		return tx.Run(ctx, r.kind.Rows.Release(surplus)...)
	})
	if err != nil {
		for _, i := range items {
			q.ended(i)
		}
		if sqldb.IsUncertain(err) {
			r.resolveRows(items)
		}
		return nil, err
	}
	for _, c := range crashes {
		r.notifyCrash(c)
	}
	claims := make([]*core.Claim, len(items))
	for n, i := range items {
		claims[n] = i.Claim
	}
	return claims, nil
}

// Lowest returns the smallest batch limit of a suspect that may be claimed, for the statements
// of Rows. If least is 0, no suspect may be claimed. If it is 1, all may be claimed, because
// the limits of suspects that crashed alone are below 1.
func Lowest(least int) int {
	switch least {
	case 0:
		return math.MaxInt32
	case 1:
		return math.MinInt32
	default:
		return least
	}
}

// admit returns the claimed items that may run, and the suspects that may not.
func (q *Queue) admit(claimed []store.Claimed) (items []*Item, surplus []store.Held) {
	var limits []int
	for _, row := range claimed {
		if row.Limit != nil {
			limits = append(limits, *row.Limit)
		}
	}
	room := max(q.suspectSlots-int(q.suspects.Load()), 0)
	admitted := q.runner.lane.Admit(limits[:min(len(limits), room)])
	for _, row := range claimed {
		if row.Limit != nil {
			may := len(admitted) > 0 && admitted[0]
			admitted = admitted[min(len(admitted), 1):]
			if !may {
				surplus = append(surplus, store.Held{ID: row.ID, Token: row.Token})
				continue
			}
			q.suspects.Add(1)
		}
		i := &Item{ID: row.ID, Row: row.Row, Queue: q.name, Token: row.Token, queue: q}
		if row.Limit != nil {
			i.suspect, i.limit = true, *row.Limit
		}
		i.Claim = &core.Claim{ID: i.ID, Public: row.Public, Token: row.Token, Work: i, Due: row.Due}
		if !i.suspect {
			i.Claim.Name, i.Claim.System = q.runner.kind.Share(i)
		}
		items = append(items, i)
	}
	return items, surplus
}

// extendRows renews claims and returns those that were lost.
func (q *Queue) extendRows(ctx context.Context, claims []*core.Claim, lease time.Duration) (lost []*core.Claim, err error) {
	r := q.runner
	held := make([]store.Held, len(claims))
	found := map[string]bool{}
	for n, c := range claims {
		held[n] = store.Held{ID: c.ID, Token: c.Token}
	}
	stmts := r.kind.Rows.Extend(held, lease, func(id string) { found[id] = true })
	if err := r.Transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return nil, err
	}
	for _, c := range claims {
		if !found[c.ID] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

// holdRows is verify for a kind with rows.
func (c *committer) holdRows(run func(...sqldb.Stmt) error, group []*Decided, wait time.Duration) error {
	found := map[string]bool{}
	stmts := append(limitLocks(wait), c.runner.kind.Rows.Hold(group, func(id string) { found[id] = true })...)
	if err := run(stmts...); err != nil {
		return err
	}
	for _, d := range group {
		d.Stale = !found[d.ID]
	}
	return nil
}

// resolveRows returns the claims of a COMMIT that got no response.
func (r *Runner) resolveRows(items []*Item) {
	held := make([]store.Held, len(items))
	for n, i := range items {
		held[n] = store.Held{ID: i.ID, Token: i.Token}
	}
	if len(held) == 0 {
		return
	}
	r.resolver.Look(func(ctx context.Context) error {
		return r.Transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, r.kind.Rows.Release(held)...) })
	}, func(error) {}, r.options.Lease/2)
}

// CommitAlone commits a decision in its own transaction, and waits for it. It retries while the
// database is unavailable, for about the length of a lease. The error is core.ErrLost if the
// claim was lost.
func (c *committer) CommitAlone(ctx context.Context, d *Decided) error {
	group := []*Decided{d}
	return c.persist(ctx, func() error {
		var wakeups Wakeups
		err := c.holding(group, func() error { return c.commitGroup(ctx, group, &wakeups, 0, aloneTimeout) })
		switch {
		case err != nil:
			return err
		case d.Stale:
			return core.ErrLost
		}
		c.runner.Publish(&wakeups)
		return nil
	})
}

// ErrGroup is the error of a decision with Alone whose group was not committed.
var ErrGroup = errors.New("commit outcomes: the group was not committed")
