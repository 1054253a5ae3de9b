// Package perduretest helps to test applications that use Perdure. It has a manual clock,
// a way to run due work to completion without a dispatcher, and assertions on triggered
// hooks and scheduled alarms.
//
// Nothing runs in the background unless the test starts it.
package perduretest

import (
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// Clock is a manual clock: its time changes only by Advance and Set. Pass it as
// perdure.Options.Clock and in the options of a dispatcher. It is safe for concurrent
// use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
}

var _ clock.Clock = (*Clock)(nil)

// NewClock returns a clock that is set to the given time.
func NewClock(now time.Time) *Clock { return &Clock{now: now.UTC()} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward and fires the timers that are due then, in order of
// their times.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.now.Add(d))
}

// Set moves the clock to a time, which may be earlier, and fires the timers that are due
// then.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(now)
}

// set moves the clock. The caller holds the lock.
func (c *Clock) set(now time.Time) {
	c.now = now.UTC()
	slices.SortStableFunc(c.timers, func(a, b *timer) int { return a.at.Compare(b.at) })
	for _, t := range c.timers {
		t.fireIfDue(c.now)
	}
	c.forgetFired()
}

// NewTimer returns a timer that fires when the clock has advanced by d.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, at: c.now.Add(d), ch: make(chan time.Time, 1)}
	if !t.fireIfDue(c.now) {
		c.timers = append(c.timers, t)
	}
	return t
}

// Timers returns the number of waiting timers. A test can use it to check that code is
// sleeping before it moves the clock.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

func (c *Clock) forgetFired() {
	kept := c.timers[:0]
	for _, t := range c.timers {
		if !t.fired {
			kept = append(kept, t)
		}
	}
	c.timers = kept
}

type timer struct {
	clock *Clock
	at    time.Time
	ch    chan time.Time
	fired bool
}

// C implements clock.Timer.
func (t *timer) C() <-chan time.Time { return t.ch }

// Stop implements clock.Timer.
func (t *timer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.fired = true
	t.clock.forgetFired()
}

// fireIfDue fires the timer if it is due, and reports whether the timer has fired. The
// caller holds the lock.
func (t *timer) fireIfDue(now time.Time) bool {
	if t.fired || t.at.After(now) {
		return t.fired
	}
	t.fired = true
	t.ch <- now
	return true
}
