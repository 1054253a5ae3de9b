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
	// Actor is whose it is, Path the place of the actor in its tree, "" for
	// the root.
	Actor Ref
	Path  string
	// Name is that of the action or of the invoked actor.
	Name string
	// Params are the params of the action, or the input of the invocation, as JSON.
	Params json.RawMessage
	// Key is the idempotency key: unique to this effect and the same for every
	// attempt.
	Key string
	// Attempt counts the runs from 1. MaxAttempts is how many there will be at
	// most, Crashes how many lost their process.
	Attempt, MaxAttempts, Crashes int
	// Created is when the step was committed that asked for it.
	Created time.Time
}

// Decode reads the params.
func (c Call) Decode(into any) error { return json.Unmarshal(c.Params, into) }

// Effect handles an action that happens outside of the machine.
type Effect struct {
	// Run has the effect. It may run more than once, with the same Key, and
	// must be idempotent. An error is a failed attempt.
	Run func(ctx context.Context, call Call) error
	// Retry says when it is tried again. Default: that of the type.
	Retry retry.Policy
	// Timeout is how long one attempt may take. Default: 5 minutes.
	Timeout time.Duration
}

// Invocation handles an actor that a machine invokes like a promise.
type Invocation struct {
	// Run does the work and returns the output, which is stored as JSON. It may
	// run more than once, with the same Key, and must be idempotent. Its
	// context ends when the state that invoked it is left. An error that is
	// not tried again is the machine's onError; a *Rejection is at once.
	Run func(ctx context.Context, call Call) (any, error)
	// Retry says when it is tried again. Default: that of the type.
	Retry retry.Policy
	// Timeout is how long one attempt may take. Default: 5 minutes.
	Timeout time.Duration
}

// Rejection is an error of a Task that is final: it is not tried again.
type Rejection struct {
	// Value is what the machine finds in event.error.
	Value any
}

func (r *Rejection) Error() string { return fmt.Sprintf("rejected: %v", r.Value) }

// Permanent says that trying again is of no use.
func (r *Rejection) Permanent() bool { return true }
