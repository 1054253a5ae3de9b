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
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// maxGroup is the largest number of outcomes that share a transaction.
	maxGroup = 1000
	// commitTimeout bounds one transaction of outcomes.
	commitTimeout = 30 * time.Second
	// aloneTimeout is that for an outcome that is committed alone: it may run a function.
	aloneTimeout = time.Minute
	// settlingLimit is the longest time that a claim waits for outcomes that make room.
	settlingLimit = 100 * time.Millisecond
	// lastWords is the time that outcomes are waited for at least when the process stops.
	lastWords = 2 * time.Second
)

// committer commits outcomes in groups, without added delay: an outcome that arrives
// while nothing is being committed goes at once, the others go together next.
type committer struct {
	runner *Runner

	mu      sync.Mutex
	queue   []*Decided
	leases  map[string]int // claims that each of our leases still holds
	running bool
	idle    *sync.Cond
	// begun and told count the groups that were taken from the queue, and those whose
	// decisions were told.
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

// Leased notes the number of claims of a new lease, which is removed with the last one.
func (c *committer) Leased(token string, claims int) {
	if claims == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases[token] = claims
}

// Settle commits a decision and then calls then. It does not wait. A claim that is no
// longer held is core.ErrLost, or core.ErrTaken if its item was cancelled.
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

// Release gives an item back as it was. It does not wait.
func (c *committer) Release(i *Item, then func(error)) {
	c.Settle(Decided{Item: i, release: true}, then)
}

// Postpone gives an item back for later, and shows the reason. It does not wait.
func (c *committer) Postpone(i *Item, reason string, delay time.Duration, then func(error)) {
	c.Settle(Decided{Item: i, reason: &reason, delay: delay}, then)
}

// loop commits until nothing is left. While those of one group are told, the next is
// being committed.
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

// settling waits for the groups that are being committed: their items make room.
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

// next returns the next group, or nil when nothing is left and all have been told.
func (c *committer) next(telling *sync.WaitGroup) []*Decided {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 { // one that is told may bring the next outcome
		c.mu.Unlock()
		telling.Wait()
		c.mu.Lock()
	}
	for seen := 0; seen < len(c.queue) && seen < maxGroup; { // items that were begun together decide together
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

// Close waits for the outcomes on their way until ctx is done, and in any case for a
// moment: the last ones are those of work that was told to stop.
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

// busy reports whether outcomes are not settled. The lock must be held.
func (c *committer) busy() bool { return c.running || c.resolver.Busy() }

// wake makes Close look again.
func (c *committer) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.Broadcast()
}

// flush commits a group and returns what tells the callers. If it has to wait for a row
// that another transaction has locked, the group is set aside.
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

// disband tells the decisions of a group that are committed alone if it fails, and returns
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

// commit commits a group and returns what tells the callers, or that it would have to
// wait for a locked row longer than wait; 0 is no limit. An error that is one outcome's
// own must not hurt the others, so the group is then committed one by one.
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
	case store.IsLocked(err):
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

// surrender ends an item whose outcome the database refuses: trying it again would be a
// loop. It returns why, so that the item is not continued.
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

// settled reports a committed group.
func settled(group []*Decided) {
	for _, d := range group {
		if d.Stale {
			d.then(d.loss())
			continue
		}
		d.then(nil)
	}
}

// repeatable reports whether a transaction may be run again: nothing was written.
func repeatable(err error) bool {
	var uncertain *sqldb.Uncertain
	return !errors.As(err, &uncertain) && (sqldb.IsTransient(err) || sqldb.IsUnavailable(err))
}

// try commits a group in one transaction, again after a deadlock, a lost connection or a
// full disk, for about as long as the leases last: what was done need not be done again
// because the database was away for a while.
func (c *committer) try(group []*Decided, news *News, wait time.Duration) error {
	until := clock.System.Now().Add(c.runner.options.Lease)
	for attempt := 1; ; attempt++ {
		err := c.CommitGroup(group, news, wait)
		if err == nil || !repeatable(err) || store.IsLocked(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Pause(context.Background(), attempt)
	}
}

// emptied returns the leases that hold nothing once the group is committed.
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

// forget counts the claims of a committed group out.
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
