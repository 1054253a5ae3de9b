// Package retry defines retry policies, and describes the attempts of work items.
//
// A Policy is stored with the work item, and every process that runs the item uses it. So
// a deployment does not change the policy of existing work.
package retry

import (
	"math"
	"time"

	"github.com/perdure/perdure/fault"
)

// Kind defines how the delay grows.
type Kind string

// The kinds of policies.
const (
	KindExponential Kind = "exponential"
	KindLinear      Kind = "linear"
	KindFixed       Kind = "fixed"
	KindNone        Kind = "none"
)

// Policy defines the maximum number of attempts and the delays between them. The zero
// Policy means that no policy is set: functions that accept a Policy then use their own
// default.
type Policy struct {
	Kind Kind `json:"kind"`
	// MaxAttempts is the maximum number of attempts, including the first.
	MaxAttempts int `json:"max_attempts"`
	// Initial is the delay after the first failure.
	Initial time.Duration `json:"initial,omitempty"`
	// Factor multiplies the delay of an exponential policy after each failure.
	Factor float64 `json:"factor,omitempty"`
	// Increment is added to the delay of a linear policy after each failure.
	Increment time.Duration `json:"increment,omitempty"`
	// Max is the maximum delay. 0 means no maximum.
	Max time.Duration `json:"max,omitempty"`
	// Jitter is the fraction of a delay, 0 to 1, by which it may be shortened randomly.
	// So work that failed at the same time is not retried at the same time.
	Jitter float64 `json:"jitter,omitempty"`
}

const (
	// DefaultAttempts is the number of attempts of work that sets none.
	DefaultAttempts = 20
	// MaxAttempts is the highest number of attempts that a policy may have.
	MaxAttempts = 10_000
	// maxDelay is the longest delay of any policy.
	maxDelay = 10 * 365 * 24 * time.Hour
)

// Exponential returns a policy that waits 100 ms after the first failure and twice as
// long after each further failure, at most 10 s. Each delay is shortened randomly by up
// to a tenth.
func Exponential(attempts int) Policy {
	return Policy{
		Kind: KindExponential, MaxAttempts: attempts,
		Initial: 100 * time.Millisecond, Factor: 2, Max: 10 * time.Second, Jitter: 0.1,
	}
}

// Linear returns a policy that waits delay after the first failure, and increment longer
// after each further failure.
func Linear(attempts int, delay, increment time.Duration) Policy {
	return Policy{Kind: KindLinear, MaxAttempts: attempts, Initial: delay, Increment: increment}
}

// Fixed returns a policy that waits the same time after every failure.
func Fixed(attempts int, delay time.Duration) Policy {
	return Policy{Kind: KindFixed, MaxAttempts: attempts, Initial: delay}
}

// None returns a policy that never retries.
func None() Policy { return Policy{Kind: KindNone, MaxAttempts: 1} }

// IsZero reports whether p is the zero Policy.
func (p Policy) IsZero() bool { return p == Policy{} }

// Validate returns a *fault.Invalid if the policy is not valid.
func (p Policy) Validate() error {
	switch p.Kind {
	case KindExponential, KindLinear, KindFixed:
	case KindNone:
		if p.MaxAttempts != 1 {
			return fault.Invalidf("retry policy", "of kind none must have 1 attempt, got %d", p.MaxAttempts)
		}
	default:
		return fault.Invalidf("retry policy", "must have the kind exponential, linear, fixed or none, got %q", p.Kind)
	}
	switch {
	case p.MaxAttempts < 1 || p.MaxAttempts > MaxAttempts:
		return fault.Invalidf("retry policy", "must have between 1 and %d attempts, got %d", MaxAttempts, p.MaxAttempts)
	case p.Initial < 0 || p.Increment < 0 || p.Max < 0:
		return fault.Invalidf("retry policy", "must not have a negative delay")
	case p.Kind == KindExponential && (p.Factor < 1 || p.Factor > 1000 || math.IsNaN(p.Factor)):
		return fault.Invalidf("retry policy", "must have a factor between 1 and 1000, got %v", p.Factor)
	case p.Jitter < 0 || p.Jitter > 1 || math.IsNaN(p.Jitter):
		return fault.Invalidf("retry policy", "must have a jitter between 0 and 1, got %v", p.Jitter)
	}
	return nil
}

// Next returns the delay after the given number of failed attempts, and whether to retry
// at all. chance is a random number in [0, 1).
func (p Policy) Next(failed int, chance float64) (time.Duration, bool) {
	if failed >= p.MaxAttempts || p.Kind == KindNone {
		return 0, false
	}
	delay := p.delay(failed)
	return delay - time.Duration(float64(delay)*p.Jitter*chance), true
}

// delay returns the delay after the given number of failures, before jitter.
func (p Policy) delay(failed int) time.Duration {
	n := float64(max(failed, 1) - 1)
	delay := float64(p.Initial)
	switch p.Kind {
	case KindExponential:
		delay *= math.Pow(p.Factor, n)
	case KindLinear:
		delay += n * float64(p.Increment)
	case KindFixed, KindNone:
	}
	limit := maxDelay
	if p.Max > 0 {
		limit = min(p.Max, limit)
	}
	return time.Duration(min(delay, float64(limit)))
}
