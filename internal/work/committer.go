package work

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// maxGroup is the largest number of outcomes that share a transaction.
	maxGroup = 1000
	// commitTimeout is the time limit for one transaction of outcomes.
	commitTimeout = 30 * time.Second
	// aloneTimeout is the time limit for an outcome that is committed alone: it may run a
	// function.
	aloneTimeout = time.Minute
	// outcomesWait is the longest time for which a claim waits for outcomes that free slots.
	outcomesWait = 100 * time.Millisecond
	// lastWords is the shortest time for which Close waits for outcomes.
	lastWords = 2 * time.Second
)

// committer commits outcomes in groups, without added delay. An outcome that arrives while
// nothing is being committed is committed immediately; the others form the next group.
type committer struct {
	runner *Runner

	mu      sync.Mutex
	queue   []*Decided
	leases  map[string]int // number of claims that each lease of this process still holds
	running bool
	idle    *sync.Cond
	// begun is the number of groups that were taken from the queue. told is the number of
	// groups whose callers were notified.
	begun, notified int
	// resolver returns claims whose outcome was not written.
	resolver *core.Resolver
}

func newCommitter(r *Runner) *committer {
	c := &committer{runner: r, leases: map[string]int{}}
	c.idle = sync.NewCond(&c.mu)
	c.resolver = core.NewResolver(c.wake)
	return c
}

// Leased records the number of claims of a new lease. The lease is removed with its last claim.
func (c *committer) Leased(token string, claims int) {
	if claims == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases[token] = claims
}

// CommitOutcome commits a decision and then calls then. It does not wait. The error is core.ErrLost if
// the claim was lost, or core.ErrTaken if the item was cancelled.
func (c *committer) CommitOutcome(d Decided, then func(error)) { c.enqueue(&d, then) }

func (c *committer) enqueue(d *Decided, then func(error)) {
	d.then = then
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, d)
	if !c.running {
		c.running = true
		go c.loop()
	}
}

// Release returns an item unchanged. It does not wait.
func (c *committer) Release(i *Item, then func(error)) {
	c.CommitOutcome(Decided{Item: i, release: true}, then)
}

// ReleaseWith is Release with an outcome for the kind's Keep, which is called if the claim was
// revoked and the item is handed over.
func (c *committer) ReleaseWith(i *Item, outcome any, then func(error)) {
	c.CommitOutcome(Decided{Item: i, Outcome: outcome, release: true}, then)
}

// Postpone returns an item with a delay and a visible reason. It does not wait.
func (c *committer) Postpone(i *Item, reason string, delay time.Duration, then func(error)) {
	c.CommitOutcome(Decided{Item: i, reason: &reason, delay: delay}, then)
}

// loop commits groups until the queue is empty. It commits the next group while the callers of
// the previous group are being notified.
func (c *committer) loop() {
	var notifying sync.WaitGroup
	for group := c.next(&notifying); group != nil; group = c.next(&notifying) {
		notify := c.flush(group)
		notifying.Wait()
		notifying.Go(func() {
			notify()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.notified++
			c.idle.Broadcast()
		})
	}
}

// awaitOutcomes waits for the groups that are being committed, because their items free slots.
func (c *committer) awaitOutcomes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, outcomesWait)
	defer cancel()
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for until := c.begun; c.notified < until && ctx.Err() == nil; {
		c.idle.Wait()
	}
}

// next returns the next group, or nil when the queue is empty and all callers were notified.
func (c *committer) next(notifying *sync.WaitGroup) []*Decided {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 { // a notified caller may add the next outcome
		c.mu.Unlock()
		notifying.Wait()
		c.mu.Lock()
	}
	for seen := 0; seen < len(c.queue) && seen < maxGroup; { // items that were started together decide together
		seen = len(c.queue)
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	n := min(len(c.queue), maxGroup)
	if n == 0 {
		c.queue, c.running = nil, false
		c.idle.Broadcast()
		return nil
	}
	group := c.queue[:n:n]
	c.queue = c.queue[n:]
	c.begun++
	return group
}

// Close waits for uncommitted outcomes until ctx is done, and for at least 2 s: the last
// outcomes belong to work that was asked to stop.
func (c *committer) Close(ctx context.Context) error {
	moment, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	defer context.AfterFunc(ctx, c.wake)()
	defer context.AfterFunc(moment, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.busy() && (ctx.Err() == nil || moment.Err() == nil) {
		c.idle.Wait()
	}
	c.resolver.Abandon()
	if c.busy() {
		return ctx.Err()
	}
	return nil
}

// busy reports whether there are uncommitted outcomes. The lock must be held.
func (c *committer) busy() bool { return c.running || c.resolver.Busy() }

// wake makes Close and settling check their conditions again.
func (c *committer) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.Broadcast()
}

// flush commits a group and returns the function that notifies the callers. If the group would
// have to wait for a row that another transaction has locked, it is set aside.
func (c *committer) flush(group []*Decided) (notify func()) {
	notify, locked := c.commit(group, lockWait)
	if !locked {
		return notify
	}
	if rest := rejectAlone(group, ErrGroup); len(rest) > 0 {
		c.setAside(rest)
	}
	return notify
}

// rejectAlone notifies the decisions of a failed group that their callers commit alone, and returns
// the others.
func rejectAlone(group []*Decided, cause error) (rest []*Decided) {
	for _, d := range group {
		if d.Alone {
			d.then(cause)
		} else {
			rest = append(rest, d)
		}
	}
	return rest
}

// commit commits a group and returns the function that notifies the callers. locked is true if
// the group would have to wait for a locked row longer than wait; 0 means no limit. If the
// error belongs to one outcome, the group is committed one by one, so that the other outcomes
// are not affected.
func (c *committer) commit(group []*Decided, wait time.Duration) (notify func(), locked bool) {
	var wakeups Wakeups
	err := c.try(group, &wakeups, wait)
	if err == nil {
		c.forget(group)
		return func() {
			notifyCallers(group)
			c.runner.Publish(&wakeups)
		}, false
	}
	switch {
	case sqldb.IsLocked(err):
		return func() {}, true
	case sqldb.IsUncertain(err), sqldb.IsUnavailable(err), sqldb.IsTransient(err), errors.Is(err, context.DeadlineExceeded):
		c.Resolve(group, fmt.Errorf("commit outcome: %w", err))
	case len(group) == 1 && group[0].Keyed && isDuplicate(err):
		c.Resolve(group, fmt.Errorf("commit outcome: another run has recorded it: %w", err))
	case len(group) == 1 && group[0].Alone:
		group[0].then(err)
	case len(group) == 1 && sqldb.Refused(err) && c.runner.kind.Refused != nil:
		group[0].then(c.failRefused(group[0], err))
	case len(group) == 1:
		c.Resolve(group, fmt.Errorf("commit outcome: %w", err))
	default:
		for _, d := range rejectAlone(group, ErrGroup) {
			c.flush([]*Decided{d})()
		}
	}
	return func() {}, false
}

// failRefused fails an item whose outcome the database rejects, because a retry would fail in the
// same way. It returns the reason, so that the item does not continue.
func (c *committer) failRefused(d *Decided, cause error) error {
	cause = fmt.Errorf("commit outcome: %w", cause)
	if d.Outcome == nil || !c.runner.kind.Refused(d, cause) {
		return cause
	}
	d.Inline = false
	var wakeups Wakeups
	if err := c.try([]*Decided{d}, &wakeups, 0); err != nil {
		return errors.Join(cause, err)
	}
	c.forget([]*Decided{d})
	c.runner.Publish(&wakeups)
	if d.Stale {
		return d.loss()
	}
	return cause
}

// notifyCallers notifies the callers of a committed group.
func notifyCallers(group []*Decided) {
	for _, d := range group {
		if d.Stale {
			d.then(d.loss())
			continue
		}
		d.then(nil)
	}
}

// isDuplicate reports whether a row exists already.
func isDuplicate(err error) bool {
	var duplicate *fault.Duplicate
	return errors.As(err, &duplicate)
}

// repeatable reports whether a transaction may be retried because nothing was written.
func repeatable(err error) bool {
	return !sqldb.IsUncertain(err) && (sqldb.IsTransient(err) || sqldb.IsUnavailable(err))
}

// try commits a group in one transaction. It retries after a deadlock, a lost connection
// or a full disk, for about the length of a lease. Finished work then does not run again
// because of a short outage.
func (c *committer) try(group []*Decided, wakeups *Wakeups, wait time.Duration) error {
	until := clock.System.Now().Add(c.runner.options.Lease)
	for attempt := 1; ; attempt++ {
		err := c.CommitGroup(group, wakeups, wait)
		if err == nil || !repeatable(err) || sqldb.IsLocked(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Yield(context.Background(), c.runner.Runtime.DB, attempt, err)
	}
}

// emptyLeases returns the leases that are empty when the group is committed.
func (c *committer) emptyLeases(group []*Decided) []string {
	if c.runner.kind.Rows != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := map[string]int{}
	for _, d := range group {
		if !d.Inline || d.Stale {
			ends[d.Token]++
		}
	}
	var empty []string
	for token, n := range ends {
		if c.leases[token] <= n {
			empty = append(empty, token)
		}
	}
	for _, d := range group {
		d.drops = c.leases[d.Token] <= ends[d.Token]
	}
	return empty
}

// forget subtracts the claims of a committed group. Outcomes of one lease may be committed
// concurrently, so that none of their transactions has the last one: forget then removes the
// lease in a further transaction.
func (c *committer) forget(group []*Decided) {
	var left []string
	c.mu.Lock()
	for _, d := range group {
		if d.Inline && !d.Stale {
			continue
		}
		claims, known := c.leases[d.Token]
		if claims > 1 {
			c.leases[d.Token] = claims - 1
			continue
		}
		delete(c.leases, d.Token)
		if known && !d.drops && c.runner.kind.Rows == nil {
			left = append(left, d.Token)
		}
	}
	c.mu.Unlock()
	if len(left) == 0 {
		return
	}
	c.resolver.Go(func(ctx context.Context) error {
		return c.runner.Transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, c.runner.Runtime.Store.DropLeases(left)) })
	}, func(error) {}) // a lease that is left expires
}
