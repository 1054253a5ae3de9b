package work

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Outcomes are committed in groups. A transaction of the application can lock a row that a
// group needs, for any time. For example, a unit that has sent a signal locks the instance,
// which may be the parent of an instance that finishes. Such a group is set aside, so that
// other outcomes do not wait for it. It is divided until only the outcomes are left that need
// the locked rows; the others are committed immediately.

const (
	// lockWait is the longest time for which a group of outcomes waits for locked rows.
	lockWait = 100 * time.Millisecond
	// lockRetry is the longest time for which outcomes that were set aside wait for locked
	// rows.
	lockRetry = 20 * time.Millisecond
)

// errLocked is the error of outcomes whose rows are locked by another transaction.
var errLocked = errors.New("commit outcome: the row is locked by another transaction")

// limitLocks returns the statements that bound the waits for locked rows; 0 means no limit.
func limitLocks(wait time.Duration) []sqldb.Stmt {
	if wait <= 0 {
		return nil
	}
	return []sqldb.Stmt{sqldb.LimitLocks(wait)}
}

// setAside commits outcomes later. It does not wait. It retries until no row is locked or the
// runner is closed. Heartbeats continue, so no step runs again because of this.
func (c *committer) setAside(group []*Decided) {
	left := group
	c.resolver.Go(func(context.Context) error {
		if left = c.divide(left, map[string]int{}); len(left) > 0 {
			return errLocked
		}
		return nil
	}, func(err error) {
		for _, d := range left {
			d.then(err)
		}
	})
}

// divide commits as much of a group as it can and returns the rest. parents counts, for each
// parent, the children that found a locked row. From two on the locked row is assumed to be the
// parent's, and its other children are not tried one by one.
func (c *committer) divide(group []*Decided, parents map[string]int) (left []*Decided) {
	var free []*Decided
	for _, d := range group {
		if parents[d.parentID()] > 1 {
			left = append(left, d)
		} else {
			free = append(free, d)
		}
	}
	if len(free) == 0 {
		return left
	}
	notify, locked := c.commit(free, lockRetry)
	notify()
	switch half := len(free) / 2; {
	case !locked:
		return left
	case half > 0:
		left = append(left, c.divide(free[:half], parents)...)
		return append(left, c.divide(free[half:], parents)...)
	}
	if p := free[0].parentID(); p != "" {
		parents[p]++
	}
	return append(left, free[0])
}

// parentID returns the item that waits for the end of this item, or the empty string.
func (d *Decided) parentID() string {
	if p := d.Item.parent; p != nil {
		return *p
	}
	return ""
}
