// Package histogram counts durations without locks and without allocation, for
// the hot paths that metrics watch.
package histogram

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of the buckets. One more has all that is longer.
var Bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
}

// Histogram counts durations. Its zero value is ready; it is safe for concurrent
// use.
type Histogram struct {
	counts [len(Bounds) + 1]atomic.Int64
	sum    atomic.Int64
}

// Observe counts a duration. A negative one, of clocks that disagree, is zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// Counts are what a histogram has counted.
type Counts struct {
	// Buckets are how many durations were in each of Bounds, and beyond.
	Buckets [len(Bounds) + 1]int64
	Sum     time.Duration
}

// Plus returns the sum of two.
func (c Counts) Plus(o Counts) Counts {
	for i, n := range o.Buckets {
		c.Buckets[i] += n
	}
	c.Sum += o.Sum
	return c
}

// Minus returns what was counted since o.
func (c Counts) Minus(o Counts) Counts {
	for i, n := range o.Buckets {
		c.Buckets[i] -= n
	}
	c.Sum -= o.Sum
	return c
}

// Total returns how many durations were counted.
func (c Counts) Total() (n int64) {
	for _, bucket := range c.Buckets {
		n += bucket
	}
	return n
}

// Quantile returns the duration that a share q of all did not exceed, as exactly as
// the buckets tell: within one, durations are taken to be spread evenly. It is 0 if
// nothing was counted, and the last bound for what is beyond that.
func (c Counts) Quantile(q float64) time.Duration {
	rank := q * float64(c.Total())
	var below time.Duration
	for i, n := range c.Buckets[:len(Bounds)] {
		if n > 0 && rank <= float64(n) {
			return below + time.Duration(rank/float64(n)*float64(Bounds[i]-below))
		}
		rank -= float64(n)
		below = Bounds[i]
	}
	if c.Total() == 0 {
		return 0
	}
	return below
}

// Counts returns what was counted. A duration that is counted meanwhile may be in
// one part of it and not in the other.
func (h *Histogram) Counts() Counts {
	c := Counts{Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		c.Buckets[i] = h.counts[i].Load()
	}
	return c
}
