package unit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// groupWait is the longest time for which a group waits for a locked row, until it has
	// met one. groupRetry is the longest time after that.
	groupWait, groupRetry = 50 * time.Millisecond, 10 * time.Millisecond
	// counterWait is the longest time for which a group waits for the outbox counter before
	// it releases its rows.
	counterWait = 2 * time.Second
	// apartSlots is the maximum number of transactions that wait for locked rows outside the
	// groups: a quarter of the connections of a pool.
	apartSlots = 4
)

// apartWaits are the times for which a unit waits for a locked row in one transaction. It
// waits in turns with other units, because the connections are few.
var apartWaits = []time.Duration{250 * time.Millisecond, time.Second, 2 * time.Second}

// ApartWait returns the time for which attempt number n, from 1, of a unit waits for a
// locked row.
func ApartWait(n int) time.Duration { return apartWaits[min(max(n, 1), len(apartWaits))-1] }

// errAgain means that the row is no longer locked, and the unit can join a group again.
var errAgain = errors.New("row is no longer locked")

// unblock removes the units that need the locked row of the failed unit from the group. Their
// callers continue in apart.
func (c *Committer) unblock(group []*job, failed *UnitError) (rest []*job) {
	if failed.Row != "" {
		c.jams.note(failed.Row)
	}
	for _, j := range group {
		if j == failed.job || failed.Row != "" && j.unit.needs(failed.Row) {
			j.done <- &blockedError{row: failed.Row, err: bare(failed)}
			continue
		}
		rest = append(rest, j)
	}
	return rest
}

// needs reports whether a statement of the unit may wait for the row.
func (u *Unit) needs(row string) bool {
	for _, s := range u.Stmts {
		if rowOf(s) == row {
			return true
		}
	}
	return false
}

// apart commits a unit that needs a locked row, in a transaction of its own. It runs in the
// goroutine of the caller. One unit at a time waits for a row. It returns errAgain if
// another unit got the row.
func (c *Committer) apart(ctx context.Context, u *Unit, row string) error {
	j := c.jams.enter(row)
	defer c.jams.leave(j)
	turn, err := j.await(ctx)
	switch {
	case err != nil:
		return rowLocked(ctx, nil)
	case !turn:
		return errAgain
	}
	for attempt := 1; ; attempt++ {
		err := c.apartOnce(ctx, u, ApartWait(attempt))
		var failed *UnitError
		switch {
		case ctx.Err() != nil && !sqldb.IsUncertain(err) && err != nil:
			j.turn <- struct{}{}
			return rowLocked(ctx, err)
		case sqldb.IsLocked(err) && errors.As(err, &failed) && (failed.Row == row || failed.Row == ""):
			continue
		case sqldb.IsLocked(err) && errors.As(err, &failed): // it got this row and waits for another
			c.jams.clear(j)
			return c.apart(ctx, u, failed.Row)
		case sqldb.IsTransient(err) && (attempt < maxAlone || sqldb.IsCertification(err)):
			Yield(ctx, c.Store.DB(), attempt, err)
			continue
		}
		c.jams.clear(j)
		var uncertain *sqldb.Uncertain
		if errors.As(err, &uncertain) {
			return &fault.Uncertain{Unit: u.ID, Err: uncertain.Err}
		}
		return bare(err)
	}
}

// apartOnce runs the unit in a transaction that waits at most wait for each row.
func (c *Committer) apartOnce(ctx context.Context, u *Unit, wait time.Duration) (err error) {
	if err := c.Enter(ctx); err != nil {
		return err
	}
	defer c.Leave()
	begun := clock.System.Now()
	defer func() { c.stats.count(1, clock.System.Now().Sub(begun), err) }()
	defer c.Watch()()
	tx, err := c.Store.DB().Begin(ctx, sqldb.Group)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	group := []*job{{unit: u, ctx: ctx}}
	last, err := c.Apply(ctx, tx, []*Unit{u}, How{Arrays: true, Rows: Within(ctx, wait), Counter: CounterWait(ctx)})
	if err != nil {
		return c.attributeJob(err, group)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.attributeJob(tx.Commit(ctx, last...), group)
}

// Enter waits for the permission to wait for a locked row in a transaction. The caller must
// call Leave after the transaction.
func (c *Committer) Enter(ctx context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave returns the permission of Enter.
func (c *Committer) Leave() { <-c.slots }

// CounterWait returns the time for which a transaction waits for the outbox counter: not
// longer than its caller would.
func CounterWait(ctx context.Context) time.Duration { return Within(ctx, counterWait) }

// Within returns wait, or the time until the deadline of ctx if that is shorter.
func Within(ctx context.Context, wait time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, deadline.Sub(clock.System.Now()))
	}
	return max(wait, time.Millisecond)
}

// rowLocked returns the error of a caller whose context ended while a row was locked.
func rowLocked(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ctx.Err()) {
		return &fault.Locked{Lock: "row", Err: ctx.Err()}
	}
	return &fault.Locked{Lock: "row", Err: fmt.Errorf("%w: %w", ctx.Err(), bare(err))}
}
