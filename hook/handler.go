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
	// Retry is the retry policy if Hook.TriggerIn is called without one. Default: the
	// policy of the namespace.
	Retry retry.Policy
	// Timeout is the time limit of the handler. After it, the context is cancelled and
	// the attempt has failed. Default: the timeout of the namespace.
	Timeout time.Duration
}

// Hook is a named hook of a namespace with payloads of type P.
type Hook[P any] struct {
	hooks *Hooks
	name  string
	retry retry.Policy
}

// Define sets the handler of a hook in this process and returns a Hook, which triggers
// it. The payload is stored as JSON. If fn returns an error or panics, the attempt has
// failed, and the retry policy decides whether and when to retry.
func Define[P any](h *Hooks, name string, fn func(context.Context, P) error, options *HandlerOptions) (*Hook[P], error) {
	if h == nil || fn == nil {
		return nil, fault.Invalidf("hook "+name, "must have a namespace and a handler")
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
		return nil, fault.Invalidf("HandlerOptions.Timeout", "must not be negative, got %v", o.Timeout)
	}
	if !h.runner.Handle(name, effect.Handler{Run: h.run(typed(fn)), Timeout: o.Timeout}) {
		return nil, fault.Invalidf("hook "+name, "already has a handler")
	}
	return &Hook[P]{hooks: h, name: name, retry: o.Retry}, nil
}

// run returns a function that calls a handler with its Info, in the context, and the
// payload.
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

// typed decodes the payload for a handler. If the payload cannot be decoded, the attempt
// fails like any other and is retried: a later deployment may be able to decode it.
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
	o := k.options(options)
	return k.hooks.TriggerIn(tx, k.name, payload, &o)
}

// TriggerManyIn records the hook once for each payload, and returns the ids in the order of
// the payloads. It is faster than TriggerIn in a loop. TriggerOptions.ID must be empty.
func (k *Hook[P]) TriggerManyIn(tx *perdure.Tx, payloads []P, options *TriggerOptions) ([]string, error) {
	return triggerMany(k.hooks, tx, k.name, payloads, k.options(options))
}

func (k *Hook[P]) options(options *TriggerOptions) TriggerOptions {
	var o TriggerOptions
	if options != nil {
		o = *options
	}
	if o.Retry.IsZero() {
		o.Retry = k.retry
	}
	return o
}

// Info describes the hook that a handler runs.
type Info struct {
	// Key is the idempotency key of the hook. It is unique to the hook and the same for
	// every attempt. It equals ID.
	Key string
	// ID, Namespace and Name identify the hook.
	ID, Namespace, Name string
	// Unit is the id of the unit of work that triggered the hook. All hooks of one unit
	// have the same.
	Unit string
	// Attempt is the number of this execution of the handler, counted from 1.
	Attempt int
	// MaxAttempts is the maximum number of attempts.
	MaxAttempts int
	// Crashes is the number of executions that crashed.
	Crashes int
	// Created is the time when the hook was triggered. Due is the time when this attempt
	// was due.
	Created, Due time.Time
}

type infoKey struct{}

// FromContext returns the Info of the running hook. ctx is the context of its handler.
// For any other context it returns the zero Info.
func FromContext(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
