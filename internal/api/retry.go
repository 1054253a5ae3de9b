package api

import (
	"time"

	"github.com/perdure/perdure/retry"
)

// Retry is a retry policy.
type Retry struct {
	Kind        retry.Kind `json:"kind" doc:"Kind of backoff." example:"exponential"`
	MaxAttempts int        `json:"max_attempts" minimum:"1" maximum:"10000"`
	Initial     Duration   `json:"initial,omitempty" doc:"Delay after the first failure."`
	Factor      float64    `json:"factor,omitempty" doc:"Factor of exponential backoff."`
	Increment   Duration   `json:"increment,omitempty" doc:"Increment of linear backoff."`
	Max         Duration   `json:"max,omitempty" doc:"Maximum delay."`
	Jitter      float64    `json:"jitter,omitempty" minimum:"0" maximum:"1" doc:"Random fraction of a delay."`
}

// ShowRetry returns a policy as the API shows it.
func ShowRetry(p retry.Policy) Retry {
	return Retry{
		Kind: p.Kind, MaxAttempts: p.MaxAttempts, Initial: Duration(p.Initial), Factor: p.Factor, Increment: Duration(p.Increment),
		Max: Duration(p.Max), Jitter: p.Jitter,
	}
}

// policy returns the policy, or the zero policy if there is none.
func (r *Retry) policy() retry.Policy {
	if r == nil {
		return retry.Policy{}
	}
	return retry.Policy{
		Kind: r.Kind, MaxAttempts: r.MaxAttempts, Initial: time.Duration(r.Initial), Factor: r.Factor, Increment: time.Duration(r.Increment),
		Max: time.Duration(r.Max), Jitter: r.Jitter,
	}
}
