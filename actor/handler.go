package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/retry"
)

// Call is one run of an effect or an invocation.
type Call struct {
	// Actor is the actor that caused the call. Path is the place of the child actor in its
	// tree, "" for the root.
	Actor Ref
	Path  string
	// Name is the name of the action or of the invoked actor.
	Name string
	// Params are the params of the action, or the input of the invocation, as JSON.
	Params json.RawMessage
	// Key is the idempotency key: unique to this effect and the same for every
	// attempt.
	Key string
	// Attempt is the number of this attempt, counted from 1. MaxAttempts is the maximum number
	// of attempts. Crashes is the number of attempts that crashed.
	Attempt, MaxAttempts, Crashes int
	// Created is the commit time of the transition that caused the call.
	Created time.Time
}

// Decode decodes the params into a value.
func (c Call) Decode(into any) error { return json.Unmarshal(c.Params, into) }

// Effect handles an action outside the machine.
type Effect struct {
	// Run performs the effect. It may run more than once with the same Key, so it must be
	// idempotent. An error is a failed attempt.
	Run func(ctx context.Context, call Call) error
	// Retry is the retry policy. Default: the policy of the type.
	Retry retry.Policy
	// Timeout is the time limit of one attempt. Default: 5 minutes.
	Timeout time.Duration
}

// Invocation handles an actor that a machine invokes as a promise.
type Invocation struct {
	// Run does the work and returns the output, which is stored as JSON. It may run more than
	// once with the same Key, so it must be idempotent. Its context is cancelled when the
	// invoking state is left. An error that is not retried triggers the machine's onError. A
	// *Rejection triggers it immediately, without retries.
	Run func(ctx context.Context, call Call) (any, error)
	// Retry is the retry policy. Default: the policy of the type.
	Retry retry.Policy
	// Timeout is the time limit of one attempt. Default: 5 minutes.
	Timeout time.Duration
}

// Rejection is a final error of an Invocation: it is not retried.
type Rejection struct {
	// Value is the value of event.error in the machine.
	Value any
}

func (r *Rejection) Error() string { return fmt.Sprintf("rejected: %v", r.Value) }

// Permanent reports that the error must not be retried.
func (r *Rejection) Permanent() bool { return true }
