package unit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// patience returns the time for which a group waits for the outbox counter: not longer
// than a caller in it would.
func patience(group []*job) time.Duration {
	wait := counterWait
	for _, j := range group {
		wait = Within(j.ctx, wait)
	}
	return max(wait, groupRetry)
}

// attributeJob adds the job to the error of one unit. It notes that the outbox counter is locked,
// which is an error of no unit.
func (c *Committer) attributeJob(err error, group []*job) error {
	var failed *UnitError
	switch {
	case errors.As(err, &failed):
		failed.job = group[failed.Unit]
	case sqldb.IsLocked(err):
		c.holder.CompareAndSwap(nil, new(string))
	}
	return err
}

// seal seals the jobs of a group. It fails if a caller has left.
func (c *Committer) seal(group []*job) bool {
	for i, j := range group {
		if !j.state.CompareAndSwap(running, sealed) {
			c.unseal(group[:i])
			return false
		}
	}
	return true
}

// unseal lets the callers of a group leave again. Callers whose context ended while their
// jobs were sealed leave now.
func (c *Committer) unseal(group []*job) {
	for _, j := range group {
		j.state.Store(running)
		if j.ctx.Err() != nil && j.leave() {
			j.done <- c.explain(j.ctx)
		}
	}
}

// present returns the jobs whose callers have not left.
func present(group []*job) (rest []*job) {
	for _, j := range group {
		if j.state.Load() != left {
			rest = append(rest, j)
		}
	}
	return rest
}

func without(group []*job, gone *job) (rest []*job) {
	for _, j := range group {
		if j != gone {
			rest = append(rest, j)
		}
	}
	return rest
}

// deliver reports the same error to all jobs.
func deliver(group []*job, err error) {
	for _, j := range group {
		j.done <- bare(err)
	}
}

// overtakenLimit is the number of attempts after which a transaction that is overtaken by
// transactions of other nodes takes the turn. overtakenPause is the longest pause between its
// attempts: it must not wait longer than the others need for a commit.
const (
	overtakenLimit = 4
	overtakenPause = 8 * time.Millisecond
)

// Yield waits before the next attempt of a transaction that failed with err. A transaction
// that other nodes of a cluster have overtaken several times takes the turn: it is not
// overtaken repeatedly by transactions that are shorter or nearer to the others.
func Yield(ctx context.Context, db sqldb.DB, attempt int, err error) {
	if !sqldb.IsCertification(err) {
		Pause(ctx, attempt)
		return
	}
	if cluster, ok := db.(sqldb.Clustered); ok && attempt >= overtakenLimit {
		_ = cluster.TakeTurn(ctx) // the next attempt may succeed without it
	}
	pause(ctx, min(time.Millisecond<<min(attempt, 10), overtakenPause))
}

// Pause waits before the next attempt of a transaction. The wait is random (full jitter),
// so that competing transactions do not collide again. Its upper bound is 4 ms after the
// first attempt and doubles with each attempt, up to 200 ms. Pause waits in real time,
// regardless of the engine's clock, because the database needs the time.
func Pause(ctx context.Context, attempt int) {
	pause(ctx, min(2*time.Millisecond<<min(attempt, 10), 200*time.Millisecond))
}

func pause(ctx context.Context, ceiling time.Duration) {
	timer := clock.System.NewTimer(rand.N(ceiling) + time.Microsecond)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
