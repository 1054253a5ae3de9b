// Package clock is the only package that reads the system clock.
//
// All other packages take a Clock, so that tests can control time.
package clock

import "time"

// Clock returns the time and creates timers.
type Clock interface {
	// Now returns the time in UTC, with a monotonic clock reading if the clock has one.
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

// System is the system clock.
var System Clock = system{}

// Skewed returns a system clock that is wrong by d.
func Skewed(d time.Duration) Clock { return skewed(d) }

// OfMachine reports whether c is a system clock, correct or skewed, and not a clock
// that a test controls. If the database server has a clock, due times follow the
// server's clock and not the system clock.
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
