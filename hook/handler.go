package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// HandlerOptions configure one handler. The zero value of every field is its
// default.
type HandlerOptions struct {
	// Retry is the policy of this hook when it is triggered through its Hook
	// without one. Default: that of the namespace.
	Retry retry.Policy
	// Timeout is how long the handler may take; then its context ends and the
	// attempt has failed. Default: that of the namespace.
	Timeout time.Duration
}

// Hook is one hook of a namespace with the type of its payload.
type Hook[P any] struct {
	hooks *Hooks
	name  string
	retry retry.Policy
}

// Define sets the handler of a hook in this process and returns the hook, to
// trigger it with. The payload is stored as JSON. If fn returns an error or
// panics, the attempt has failed and the retry policy decides.
func Define[P any](h *Hooks, name string, fn func(context.Context, P) error, options *HandlerOptions) (*Hook[P], error) {
	if h == nil || fn == nil {
		return nil, fault.Invalidf("hook "+name, "has no namespace or no handler")
	}
	if err := edge.Name("hook", name); err != nil {
		return nil, err
	}
	var o HandlerOptions
	if options != nil {
		o = *options
	}
	edge.Default(&o.Timeout, h.options.Timeout)
	if o.Retry.IsZero() {
		o.Retry = h.options.Retry
	}
	if err := o.Retry.Validate(); err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return nil, fault.Invalidf("HandlerOptions.Timeout", "is negative")
	}
	if !h.runner.Handle(name, effect.Handler{Run: h.run(typed(fn)), Timeout: o.Timeout}) {
		return nil, fault.Invalidf("hook "+name, "has a handler already")
	}
	return &Hook[P]{hooks: h, name: name, retry: o.Retry}, nil
}

// run gives a handler its Info and the payload.
func (h *Hooks) run(fn func(context.Context, []byte) error) func(context.Context, store.Hook) (any, error) {
	return func(ctx context.Context, hook store.Hook) (any, error) {
		return nil, fn(context.WithValue(ctx, infoKey{}, h.info(hook)), []byte(hook.Payload))
	}
}

func (h *Hooks) info(hook store.Hook) Info {
	return Info{
		Key: hook.ID, ID: hook.ID, Namespace: h.namespace, Name: hook.Name, Unit: hook.Unit, Attempt: hook.Attempts + 1,
		MaxAttempts: hook.MaxAttempts, Crashes: hook.Crashes, Created: hook.Created.UTC(), Due: hook.Due.UTC(),
	}
}

// typed decodes the payload for a handler. A payload that does not fit is a
// failed attempt like any other: a later deployment may know better.
func typed[P any](fn func(context.Context, P) error) func(context.Context, []byte) error {
	return func(ctx context.Context, raw []byte) error {
		var payload P
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&payload); err != nil {
			return fmt.Errorf("decode payload: %w", err)
		}
		return fn(ctx, payload)
	}
}

// Name returns the hook's name.
func (k *Hook[P]) Name() string { return k.name }

// TriggerIn records the hook in the unit of work and returns its id.
func (k *Hook[P]) TriggerIn(tx *perdure.Tx, payload P, options *TriggerOptions) (string, error) {
	var o TriggerOptions
	if options != nil {
		o = *options
	}
	if o.Retry.IsZero() {
		o.Retry = k.retry
	}
	return k.hooks.TriggerIn(tx, k.name, payload, &o)
}

// Info is what a handler can know of the hook that it runs.
type Info struct {
	// Key is the idempotency key of the hook: unique to it and the same for
	// every attempt. It is the ID.
	Key string
	// ID, Namespace and Name are the hook's.
	ID, Namespace, Name string
	// Unit is the id of the unit of work that triggered the hook; the hooks of
	// one unit share it.
	Unit string
	// Attempt counts the executions of the handler from 1.
	Attempt int
	// MaxAttempts is how many there will be at most.
	MaxAttempts int
	// Crashes counts the executions that lost their process.
	Crashes int
	// Created is when the hook was triggered, Due when this attempt was due.
	Created, Due time.Time
}

type infoKey struct{}

// FromContext returns what is known of the hook that the handler runs, from
// the context that it was given. It is the zero Info elsewhere.
func FromContext(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
