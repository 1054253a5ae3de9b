package retry

import (
	"errors"
	"time"
)

// Default is the policy of all work that sets none: 20 attempts within about two days.
// The delays are 1 s, 3 s, 9 s and so on, up to 5 hours, each shortened randomly by up to
// a fifth. The last attempt runs 42 to 53 hours after the first.
var Default = Policy{
	Kind: KindExponential, MaxAttempts: DefaultAttempts, Initial: time.Second, Factor: 3, Max: 5 * time.Hour, Jitter: 0.2,
}

// Stop marks an error after which work must not be retried, regardless of its policy:
//
//	return retry.Stop(errors.New("card is stolen"))
//
// It returns nil if err is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopError{err}
}

// After marks an error after which work must be retried after exactly d. The failed
// attempt counts: the policy's MaxAttempts still applies. A negative d counts as 0. It
// returns nil if err is nil.
func After(d time.Duration, err error) error { return after(d, err, false) }

// AtLeast marks an error after which work must not be retried before d has passed. A
// longer delay of the policy takes precedence. Use it for the Retry-After header of a
// service: a short delay must not exhaust the attempts during an outage. Otherwise
// AtLeast is like After.
func AtLeast(d time.Duration, err error) error { return after(d, err, true) }

func after(d time.Duration, err error, atLeast bool) error {
	if err == nil {
		return nil
	}
	return &afterError{err: err, delay: min(max(d, 0), maxDelay), atLeast: atLeast}
}

// Stopped reports whether err was marked by Stop.
func Stopped(err error) bool {
	var stop interface{ Permanent() bool }
	return errors.As(err, &stop) && stop.Permanent()
}

// Delay returns the delay that err was marked with by After or AtLeast.
func Delay(err error) (time.Duration, bool) {
	var after *afterError
	if !errors.As(err, &after) {
		return 0, false
	}
	return after.delay, true
}

// Decide is Next for an attempt that failed with err: Stop, After and AtLeast take precedence
// over the policy's delays.
func (p Policy) Decide(failed int, err error, chance float64) (time.Duration, bool) {
	delay, again := p.Next(failed, chance)
	if !again || Stopped(err) {
		return 0, false
	}
	var asked *afterError
	switch {
	case !errors.As(err, &asked):
		return delay, true
	case asked.atLeast:
		return max(delay, asked.delay), true
	}
	return asked.delay, true
}

type stopError struct{ err error }

func (e *stopError) Error() string   { return e.err.Error() }
func (e *stopError) Unwrap() error   { return e.err }
func (e *stopError) Permanent() bool { return true }

type afterError struct {
	err     error
	delay   time.Duration
	atLeast bool
}

func (e *afterError) Error() string { return e.err.Error() }
func (e *afterError) Unwrap() error { return e.err }
