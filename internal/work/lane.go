package work

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// The items of a queue of machines have different names. If a name has no room in the slots of
// the process, its items are moved to a lane of the queue as they are claimed. So the claims of
// the queue reach the items behind them. Claims read the lanes of names that have room.

// surplus is the number of items that a claim may return in addition to the free slots, while a
// name has no room: most of them are moved away.
const surplus = 400

// withRoom returns the lanes whose names have room.
func (q *Queue) withRoom(lanes []string) []string {
	held := q.worker.Held()
	if len(held) == 0 {
		return lanes
	}
	return slices.DeleteFunc(slices.Clone(lanes), func(lane string) bool {
		return slices.ContainsFunc(store.SharesOfLane(lane), func(name string) bool { return slices.Contains(held, name) })
	})
}

// findLanes returns the statement that looks for lanes of the queue. due is called with the time
// until an item of a lane with room is due.
func (q *Queue) findLanes(due func(time.Duration)) []sqldb.Stmt {
	r := q.runner
	if !r.kind.Spread {
		return nil
	}
	var lanes []string
	find := r.family().Lanes(q.name, r.Runtime.Now(), func(lane string, wait time.Duration) {
		lanes = append(lanes, lane)
		if len(q.withRoom([]string{lane})) > 0 {
			due(wait)
		}
	})
	find.Done = func(int64) error {
		q.lanes.Store(&lanes)
		return nil
	}
	return []sqldb.Stmt{find}
}

// takeLanes claims due items of the lanes that have room.
func (q *Queue) takeLanes(ctx context.Context, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	known := q.lanes.Load()
	if known == nil || len(*known) == 0 {
		return nil, nil
	}
	lanes := q.withRoom(*known)
	if len(lanes) == 0 {
		return nil, nil
	}
	r := q.runner
	err = unit.Overtakable(ctx, nil, func() error {
		tx, err := r.Runtime.DB.Begin(ctx, sqldb.Claim)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		claim := q.newClaim(limit, lease)
		claim.Lanes = lanes
		claims, err = q.lease(ctx, tx, claim, func(found func(store.Claimed)) []sqldb.Stmt {
			return r.family().ClaimLanes(claim, r.Runtime.Now(), found)
		}, func(*Item) {})
		return err
	})
	return claims, err
}

// moveAway returns claims whose names have no room, each to the lane of its names.
func (q *Queue) moveAway(_ context.Context, claims []*core.Claim) error {
	errs := make(chan error, len(claims))
	var lanes []string
	for _, c := range claims {
		i := c.Work.(*Item)
		lane := store.ShareLane(q.name, c.Name, c.System)
		lanes = append(lanes, lane)
		q.runner.enqueue(&Decided{Item: i, release: true, lane: lane}, func(err error) { errs <- err })
	}
	var all []error
	for range claims {
		all = append(all, <-errs)
	}
	q.addLanes(lanes)
	return errors.Join(all...)
}

// addLanes adds lanes to those that are known.
func (q *Queue) addLanes(lanes []string) {
	for {
		old := q.lanes.Load()
		all := slices.Clone(lanes)
		if old != nil {
			all = append(all, *old...)
		}
		slices.Sort(all)
		all = slices.Compact(all)
		if q.lanes.CompareAndSwap(old, &all) {
			return
		}
	}
}
