// Package core runs durable work of any kind: it claims due work, renews the leases,
// runs the work within a concurrency limit, and drains it.
//
// It knows no kind of work by name. A kind (hooks, instances, tasks, alarms) is a Kind:
// functions on its own table that follow one protocol. A claim writes the row that it
// locks, with a fresh token and a lease. Every statement that finishes or extends the
// claim is guarded by that token. A live process returns the claims that it does not
// run. The next Claim, in any process, returns the expired claims of other processes
// and counts a crash for each.
package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// The causes with which the context of running work is cancelled.
var (
	// ErrLost reports that the claim is no longer valid: another process may be running
	// the work. Discard the outcome.
	ErrLost = errors.New("claim was lost")
	// ErrTaken is ErrLost for a claim that was revoked because the work was cancelled,
	// while the lease is still valid.
	ErrTaken = fmt.Errorf("%w: the work was cancelled", ErrLost)
	// ErrStopping reports that the process is stopping. Work that returns for this
	// reason is released without counting an attempt.
	ErrStopping = errors.New("worker is stopping")
)

// Claim is one work item that is leased to this process.
type Claim struct {
	// ID identifies the work item and Token this claim.
	ID, Token string
	// Public is the id by which users know the work item. Empty: ID.
	Public string
	// Work is data of the kind.
	Work any
	// Due is the time at which the work was due, for statistics. Zero: not known.
	Due time.Time
	// Failed is set if the committed outcome is a failed attempt.
	Failed bool
	// Name is the name with which the work shares the slots of the worker, and System the other
	// system that it calls. A system gets fewer slots while it fails repeatedly. Empty: it
	// takes a slot without regard to other work.
	Name, System string
	// Ended is called when the claim ends, with the error of End. Nil: no function is called.
	Ended func(error)

	worker    *Worker
	run       func()
	admitted  bool // it has a slot; the worker's lock guards it
	committed bool // its outcome was committed
	begun     time.Time
	until     time.Time // end of the lease, by the local clock
	cancel    context.CancelCauseFunc
	call      atomic.Pointer[call] // the running call
	// committing counts the transactions of this process that lock the item's row.
	committing atomic.Int32
}

// Committing runs fn, which locks the rows of claims. Until fn returns, the heartbeat
// skips these claims: otherwise it would wait for the lock, and delay the renewal of
// all other claims of the worker. The reaper skips locked rows.
func Committing(claims []*Claim, fn func() error) error {
	for _, c := range claims {
		c.committing.Add(1)
		defer c.committing.Add(-1)
	}
	return fn()
}

// stop cancels the claim's context.
func (c *Claim) stop(cause error) {
	c.cancel(cause)
	if call := c.call.Load(); call != nil {
		call.stop(context.Canceled)
	}
}

// Go runs fn on a goroutine of the worker, to continue the work.
func (c *Claim) Go(fn func()) { c.worker.pool.run(fn) }

// End frees the claim's slot. It does not wait.
func (c *Claim) End(err error) { c.worker.finish(c, err) }

// Kind is one kind of durable work. All functions are safe for concurrent use. Errors
// that they return are reported, and the call is repeated later; they never stop the
// worker.
type Kind struct {
	// Name is for messages.
	Name string
	// Claim leases up to max due work items for lease. Before that it returns expired
	// claims of any process, see Expired. It must not wait for work.
	Claim func(ctx context.Context, max int, lease time.Duration) ([]*Claim, error)
	// Begin executes the work and commits its outcome, guarded by the token. It calls
	// End of the claim once, when the outcome is committed or the claim was returned;
	// it need not wait for that. The context is cancelled early with ErrLost or
	// ErrStopping as its cause.
	Begin func(ctx context.Context, c *Claim)
	// AwaitOutcomes waits for a short, bounded time for uncommitted outcomes, so that claims
	// are not made one by one. It is called before a claim if few slots are free. Nil:
	// no wait.
	AwaitOutcomes func(ctx context.Context)
	// Extend renews the leases of claims and returns the claims that were lost.
	Extend func(ctx context.Context, claims []*Claim, lease time.Duration) (lost []*Claim, err error)
	// Taken returns the claims that were revoked because the work was cancelled, while
	// their lease is still valid. It is called every 500 ms while work runs, so it must
	// be cheap. Nil: only Extend finds them.
	Taken func(ctx context.Context, claims []*Claim) ([]*Claim, error)
	// Release returns claims that were not started, without counting an attempt.
	Release func(ctx context.Context, claims []*Claim) error
	// Return is Release for claims whose names have no room. They must not be claimed again
	// while Worker.Held has their names. Nil: Release.
	Return func(ctx context.Context, claims []*Claim) error
	// Next returns the time until work is due or a claim expires; ok is false if there
	// is none.
	Next func(ctx context.Context) (wait time.Duration, ok bool, err error)
	// Sweep removes rows whose retention has passed. It is called after work was done,
	// at most once per Options.SweepEvery, never while idle. Nil: nothing to remove.
	Sweep func(ctx context.Context) error
}
