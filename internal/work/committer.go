package work

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

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
	// settlingLimit is the longest time for which a claim waits for outcomes that free slots.
	settlingLimit = 100 * time.Millisecond
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
	begun, told int
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

// Settle commits a decision and then calls then. It does not wait. The error is core.ErrLost if
// the claim was lost, or core.ErrTaken if the item was cancelled.
func (c *committer) Settle(d Decided, then func(error)) { c.settle(&d, then) }

func (c *committer) settle(d *Decided, then func(error)) {
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
	c.Settle(Decided{Item: i, release: true}, then)
}

// Postpone returns an item with a delay and a visible reason. It does not wait.
func (c *committer) Postpone(i *Item, reason string, delay time.Duration, then func(error)) {
	c.Settle(Decided{Item: i, reason: &reason, delay: delay}, then)
}

// loop commits groups until the queue is empty. It commits the next group while the callers of
// the previous group are being notified.
func (c *committer) loop() {
	var telling sync.WaitGroup
	for group := c.next(&telling); group != nil; group = c.next(&telling) {
		tell := c.flush(group)
		telling.Wait()
		telling.Go(func() {
			tell()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told++
			c.idle.Broadcast()
		})
	}
}

// settling waits for the groups that are being committed, because their items free slots.
func (c *committer) settling(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settlingLimit)
	defer cancel()
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for until := c.begun; c.told < until && ctx.Err() == nil; {
		c.idle.Wait()
	}
}

// next returns the next group, or nil when the queue is empty and all callers were notified.
func (c *committer) next(telling *sync.WaitGroup) []*Decided {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 { // a notified caller may add the next outcome
		c.mu.Unlock()
		telling.Wait()
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
func (c *committer) flush(group []*Decided) (tell func()) {
	tell, locked := c.commit(group, lockWait)
	if !locked {
		return tell
	}
	if rest := disband(group, ErrGroup); len(rest) > 0 {
		c.setAside(rest)
	}
	return tell
}

// disband notifies the decisions of a failed group that their callers commit alone, and returns
// the others.
func disband(group []*Decided, cause error) (rest []*Decided) {
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
func (c *committer) commit(group []*Decided, wait time.Duration) (tell func(), locked bool) {
	var news News
	err := c.try(group, &news, wait)
	if err == nil {
		c.forget(group)
		return func() {
			settled(group)
			c.runner.Publish(&news)
		}, false
	}
	var uncertain *sqldb.Uncertain
	switch {
	case sqldb.IsLocked(err):
		return func() {}, true
	case errors.As(err, &uncertain), sqldb.IsUnavailable(err), sqldb.IsTransient(err), errors.Is(err, context.DeadlineExceeded):
		c.Resolve(group, fmt.Errorf("commit outcome: %w", err))
	case len(group) == 1 && group[0].Alone:
		group[0].then(err)
	case len(group) == 1 && sqldb.Refused(err) && c.runner.kind.Refused != nil:
		group[0].then(c.surrender(group[0], err))
	case len(group) == 1:
		c.Resolve(group, fmt.Errorf("commit outcome: %w", err))
	default:
		for _, d := range disband(group, ErrGroup) {
			c.flush([]*Decided{d})()
		}
	}
	return func() {}, false
}

// surrender fails an item whose outcome the database rejects, because a retry would fail in the
// same way. It returns the reason, so that the item does not continue.
func (c *committer) surrender(d *Decided, cause error) error {
	cause = fmt.Errorf("commit outcome: %w", cause)
	if d.Outcome == nil || !c.runner.kind.Refused(d, cause) {
		return cause
	}
	d.Inline = false
	var news News
	if err := c.try([]*Decided{d}, &news, 0); err != nil {
		return errors.Join(cause, err)
	}
	c.forget([]*Decided{d})
	c.runner.Publish(&news)
	if d.Stale {
		return d.loss()
	}
	return cause
}

// settled notifies the callers of a committed group.
func settled(group []*Decided) {
	for _, d := range group {
		if d.Stale {
			d.then(d.loss())
			continue
		}
		d.then(nil)
	}
}

// repeatable reports whether a transaction may be retried because nothing was written.
func repeatable(err error) bool {
	var uncertain *sqldb.Uncertain
	return !errors.As(err, &uncertain) && (sqldb.IsTransient(err) || sqldb.IsUnavailable(err))
}

// try commits a group in one transaction. It retries after a deadlock, a lost connection
// or a full disk, for about the length of a lease. Finished work then does not run again
// because of a short outage.
func (c *committer) try(group []*Decided, news *News, wait time.Duration) error {
	until := clock.System.Now().Add(c.runner.options.Lease)
	for attempt := 1; ; attempt++ {
		err := c.CommitGroup(group, news, wait)
		if err == nil || !repeatable(err) || sqldb.IsLocked(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Pause(context.Background(), attempt)
	}
}

// emptied returns the leases that are empty when the group is committed.
func (c *committer) emptied(group []*Decided) []string {
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
	return empty
}

// forget subtracts the claims of a committed group.
func (c *committer) forget(group []*Decided) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range group {
		if d.Inline && !d.Stale {
			continue
		}
		if c.leases[d.Token]--; c.leases[d.Token] <= 0 {
			delete(c.leases, d.Token)
		}
	}
}
