package cron

import (
	"time"

	"github.com/perdure/perdure/fault"
)

// Policy decides which ticks are fired that passed while no process could fire them.
type Policy string

// The policies.
const (
	// Skip fires none of them: the schedule continues with its next tick.
	Skip Policy = "skip"
	// Once fires one tick for all of them, the latest.
	Once Policy = "once"
	// All fires each, the oldest first, up to a limit.
	All Policy = "all"
)

// Validate returns an error if p is not one of the policies.
func (p Policy) Validate() error {
	switch p {
	case Skip, Once, All:
		return nil
	default:
		return fault.Invalidf("missed policy", "must be skip, once or all, got %q", string(p))
	}
}

// Missed returns the ticks in (last, now] to fire, and the number of other ticks in
// that period, which are skipped. Only All returns more than one tick, at most limit. A
// policy other than Once or All returns none. The schedule then continues with
// Next(now).
//
// A tick is always fired a little late. A caller that fires a stored tick therefore
// passes that tick as last: it is not missed. The ticks after it are.
//
// The running time depends on the limit, and hardly on the length of the period or on
// the number of missed ticks.
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
