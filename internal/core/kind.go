// Package core runs durable work of any kind: it claims what is due, keeps the
// claims alive, runs them within a limit, and stops in time.
//
// It knows no kind of work by name. A kind (hooks, FSM instances, tasks,
// alarms) is a Kind: functions on its own table that follow one protocol. A
// claim writes the row that it locks, with a fresh token and a lease; every
// statement that ends or extends it is guarded by that token. A process that is
// alive returns the claims that it does not run. The next Claim, in any process,
// returns the expired claims of other processes and counts a crash for each.
package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Why the context of running work ends before the work does.
var (
	// ErrLost says that the claim is no longer ours: somebody else may be
	// running the work. Its outcome must be dropped.
	ErrLost = errors.New("claim was lost")
	// ErrTaken is ErrLost for a claim that was taken away because the work was
	// cancelled, while the lease continues.
	ErrTaken = fmt.Errorf("%w: the work was cancelled", ErrLost)
	// ErrStopping says that the process stops. Work that gives up for this
	// reason is released at no cost.
	ErrStopping = errors.New("worker is stopping")
)

// Claim is one piece of work that is leased to this process.
type Claim struct {
	// ID names the work and Token this claim of it.
	ID, Token string
	// Public is the id that users know the work by. Empty: ID.
	Public string
	// Work is the kind's own data.
	Work any
	// Due is when the work was due, for statistics. Zero: not known.
	Due time.Time
	// Failed is set if the outcome that was committed is a failed attempt.
	Failed bool

	worker *Worker
	begun  time.Time
	until  time.Time // when the lease ends, by our own clock
	cancel context.CancelCauseFunc
	call   atomic.Pointer[call] // that is running
	// committing counts the transactions of this process that hold the work's row.
	committing atomic.Int32
}

// Committing runs fn, which holds a lock on the rows of claims. Until fn returns, the
// heartbeat skips them: otherwise it would wait for the lock, and the leases of all other
// claims of the worker with it. The reaper skips rows that are locked.
func Committing(claims []*Claim, fn func() error) error {
	for _, c := range claims {
		c.committing.Add(1)
		defer c.committing.Add(-1)
	}
	return fn()
}

// stop ends the claim's context.
func (c *Claim) stop(cause error) {
	c.cancel(cause)
	if call := c.call.Load(); call != nil {
		call.stop(context.Canceled)
	}
}

// Go runs fn on a goroutine of the worker, to go on with the work.
func (c *Claim) Go(fn func()) { c.worker.pool.run(fn) }

// End frees the claim's slot. It does not wait for anything.
func (c *Claim) End(err error) { c.worker.finish(c, err) }

// Kind is one kind of durable work. All functions are safe for concurrent use.
// Errors that they return are reported and the call is made again later; they
// never end the worker.
type Kind struct {
	// Name is for messages.
	Name string
	// Claim leases up to max pieces of due work for lease, and first returns
	// expired claims of any process, see Expired. It must not wait for work.
	Claim func(ctx context.Context, max int, lease time.Duration) ([]*Claim, error)
	// Begin executes the work and commits its outcome, guarded by the token. It calls End
	// of the claim once, when the outcome is committed or the claim was given back; it need
	// not wait for that. The context ends early with ErrLost or ErrStopping as its cause.
	Begin func(ctx context.Context, c *Claim)
	// Settling waits a moment for outcomes that are on their way, so that claims are not
	// made one by one. It is called before a claim if few slots are free. Nil: it does not.
	Settling func(ctx context.Context)
	// Extend renews the leases of claims and returns those that are lost.
	Extend func(ctx context.Context, claims []*Claim, lease time.Duration) (lost []*Claim, err error)
	// Taken returns the claims that were taken away although their lease continues,
	// because the work was cancelled. It is called every 500 ms while work runs, so
	// it must be cheap. Nil: only Extend finds them.
	Taken func(ctx context.Context, claims []*Claim) ([]*Claim, error)
	// Release gives claims back that have not been started, at no cost.
	Release func(ctx context.Context, claims []*Claim) error
	// Next returns how long it is until work is due or a claim expires; ok is
	// false if there is none.
	Next func(ctx context.Context) (wait time.Duration, ok bool, err error)
	// Sweep removes what is kept no longer. It is called now and then after
	// work was done, never while idle. Nil: nothing to remove.
	Sweep func(ctx context.Context) error
}
