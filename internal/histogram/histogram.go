// Package histogram counts durations without locks and without allocation, for metrics on
// hot paths.
package histogram

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of the buckets. One more bucket has all longer durations.
var Bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
}

// Histogram counts durations. Its zero value is ready to use. It is safe for concurrent
// use.
type Histogram struct {
	counts [len(Bounds) + 1]atomic.Int64
	sum    atomic.Int64
}

// Observe counts a duration. A negative duration, caused by clocks that disagree, counts as
// zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// Counts are the counts of a histogram.
type Counts struct {
	// Buckets are the numbers of durations in each bucket of Bounds, and beyond the last
	// bound.
	Buckets [len(Bounds) + 1]int64
	Sum     time.Duration
}

// Plus returns the sum of c and o.
func (c Counts) Plus(o Counts) Counts {
	for i, n := range o.Buckets {
		c.Buckets[i] += n
	}
	c.Sum += o.Sum
	return c
}

// Minus returns the counts since o.
func (c Counts) Minus(o Counts) Counts {
	for i, n := range o.Buckets {
		c.Buckets[i] -= n
	}
	c.Sum -= o.Sum
	return c
}

// Total returns the number of counted durations.
func (c Counts) Total() (n int64) {
	for _, bucket := range c.Buckets {
		n += bucket
	}
	return n
}

// Quantile returns the duration that a share q of all durations did not exceed. It
// interpolates linearly within a bucket. It is 0 if nothing was counted, and the last bound
// for durations beyond that.
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

// Counts returns the current counts. A duration that is observed concurrently may be in one
// part of the result and not in the other.
func (h *Histogram) Counts() Counts {
	c := Counts{Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		c.Buckets[i] = h.counts[i].Load()
	}
	return c
}
