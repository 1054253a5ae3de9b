// Package clock is the one place that asks the machine for the time.
//
// Everything else takes a Clock, so that tests can move time by hand.
package clock

import "time"

// Clock tells the time and wakes sleepers.
type Clock interface {
	// Now returns the time in UTC, with the monotonic reading of the machine
	// where it has one.
	Now() time.Time
	// NewTimer returns a timer that fires once, d from now.
	NewTimer(d time.Duration) Timer
}

// Timer is a timer that fires once on its channel.
type Timer interface {
	C() <-chan time.Time
	// Stop prevents the timer from firing. After Stop nothing more is sent.
	Stop()
}

// System is the machine's clock.
var System Clock = system{}

// Skewed returns the machine's clock as it would be if it were wrong by d.
func Skewed(d time.Duration) Clock { return skewed(d) }

// OfMachine reports whether c is the clock of a machine, right or wrong, as
// opposed to one that a test moves. Where a database server has a clock, that
// one decides and not the machine's.
func OfMachine(c Clock) bool {
	switch c.(type) {
	case system, skewed:
		return true
	}
	return false
}

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) NewTimer(d time.Duration) Timer { return timer{time.NewTimer(d)} }

type timer struct{ *time.Timer }

func (t timer) C() <-chan time.Time { return t.Timer.C }

func (t timer) Stop() { t.Timer.Stop() }

type skewed time.Duration

func (s skewed) Now() time.Time { return System.Now().Add(time.Duration(s)) }

func (s skewed) NewTimer(d time.Duration) Timer { return System.NewTimer(d) }
