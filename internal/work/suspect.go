package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// freed wakes the queues of this process: more suspects may run.
func (r *Runner) freed() {
	for _, q := range r.served() {
		r.Runtime.Hub.Notify(r.kind.Topic(q.name), time.Time{})
	}
}

// takeSuspects claims up to limit suspects that may run together with the running suspects,
// under a separate lease. Suspects use at most half of the slots of a queue, so that they do
// not hold up other items.
func (q *Queue) takeSuspects(ctx context.Context, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	err = unit.Overtakable(ctx, nil, func() (err error) {
		claims, err = q.takeSuspectsOnce(ctx, limit, lease)
		return err
	})
	return claims, err
}

func (q *Queue) takeSuspectsOnce(ctx context.Context, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	r := q.runner
	least := q.least()
	limit = min(limit, r.lane.Room(), q.suspectSlots-int(q.suspects.Load()))
	source := q.source()
	if least == 0 || limit < 1 || q.idle(source) {
		return nil, nil
	}
	tx, err := r.Runtime.DB.Begin(ctx, sqldb.Claim)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var due []store.Suspect
	if err := tx.Run(ctx, r.family().ListSuspects(source, least, limit, r.Runtime.Now(), func(s store.Suspect) { due = append(due, s) })); err != nil {
		return nil, err
	}
	limits := map[string]int{}
	var ids []string
	for i, admitted := range r.lane.Admit(limitsOf(due)) {
		if admitted {
			ids = append(ids, due[i].ID)
			limits[due[i].ID] = due[i].Limit
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	q.suspects.Add(int64(len(ids)))
	defer func() { // leave the slots of suspects that were not claimed
		for _, c := range claims {
			delete(limits, c.ID)
		}
		for _, limit := range limits {
			q.left(limit)
		}
	}()
	claim := q.newClaim(len(ids), lease)
	return q.lease(ctx, tx, claim, func(found func(store.Claimed)) []sqldb.Stmt {
		return r.family().ClaimSuspects(claim, ids, r.Runtime.Now(), found)
	}, func(i *Item) { i.suspect, i.limit = true, limits[i.ID] })
}

func limitsOf(suspects []store.Suspect) []int {
	limits := make([]int, len(suspects))
	for i, s := range suspects {
		limits[i] = s.Limit
	}
	return limits
}

// least returns the smallest batch limit of a suspect that could be claimed now, or 0 if none
// could.
func (q *Queue) least() int {
	if int(q.suspects.Load()) >= q.suspectSlots {
		return 0
	}
	return q.runner.lane.Least()
}

// ended frees the slot of a suspect, if the item was one.
func (q *Queue) ended(i *Item) {
	if i.suspect {
		q.left(i.limit)
	}
}

func (q *Queue) left(limit int) {
	q.suspects.Add(-1)
	q.runner.lane.Leave(limit)
}
