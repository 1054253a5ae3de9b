package cron

import (
	"time"

	"github.com/perdure/perdure/fault"
)

// Policy says what happens to ticks that passed while nobody could act on them.
type Policy string

// The policies.
const (
	// Skip fires none of them: the schedule goes on with its next tick.
	Skip Policy = "skip"
	// Once fires one time for all of them, as the latest.
	Once Policy = "once"
	// All fires each, the oldest first, up to a limit.
	All Policy = "all"
)

// Validate refuses what is not a policy.
func (p Policy) Validate() error {
	switch p {
	case Skip, Once, All:
		return nil
	default:
		return fault.Invalidf("missed policy", "is %q; skip, once and all are possible", string(p))
	}
}

// Missed returns the ticks in (last, now] to fire, and how many others there are,
// which are not. Only All has more than one tick to fire, at most limit; what is
// neither Once nor All fires none. Afterwards the schedule goes on with
// Next(now).
//
// A tick is always noticed a little late, so whoever fires a stored tick passes
// that tick as last: it is not missed, it is being fired. The ticks after it are.
//
// The time taken depends on the limit, hardly on how long the time was or how
// many ticks were missed.
func Missed(s Schedule, last, now time.Time, policy Policy, limit int) (due []time.Time, skipped int) {
	last, now = clamp(last), clamp(now)
	if s.ticks == nil || !last.Before(now) {
		return nil, 0
	}
	count := s.ticks.count(last, now)
	switch {
	case count == 0:
	case policy == Once:
		due = []time.Time{s.ticks.latest(last, now)}
	case policy == All:
		due = oldest(s.ticks, last, min(count, limit))
	}
	return due, count - len(due)
}

// oldest returns the first n ticks after a time.
func oldest(ticks ticker, last time.Time, n int) []time.Time {
	if n <= 0 {
		return nil
	}
	due := make([]time.Time, 0, n)
	for range n {
		last = ticks.next(last)
		due = append(due, last)
	}
	return due
}
