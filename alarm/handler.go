package alarm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/retry"
)

// HandlerOptions configure one handler. The zero value of every field is its
// default.
type HandlerOptions struct {
	// Retry is the policy of alarms that are scheduled through their Type without
	// one. Default: that of Options.
	Retry retry.Policy
	// Timeout is how long the handler may take; then its context ends and the
	// attempt has failed. Default: that of Options.
	Timeout time.Duration
}

// Type is a type of alarms with the type of its payload.
type Type[P any] struct {
	alarms *Alarms
	name   string
	retry  retry.Policy
}

// handler is a handler without its type.
type handler struct {
	run     func(ctx context.Context, payload []byte) error
	timeout time.Duration
}

// Handle sets the handler of a type of alarms in this process and returns the
// type, to schedule alarms with. The payload is stored as JSON. If fn returns an
// error or panics, the attempt has failed and the retry policy decides. Alarms of
// a type that has no handler here wait for a process that has it.
func Handle[P any](a *Alarms, name string, fn func(context.Context, P) error, options *HandlerOptions) (*Type[P], error) {
	if a == nil || fn == nil {
		return nil, fault.Invalidf("alarm type "+name, "has no handler, or nowhere to set it")
	}
	if err := checkType(name); err != nil {
		return nil, err
	}
	var o HandlerOptions
	if options != nil {
		o = *options
	}
	edge.Default(&o.Timeout, a.options.Timeout)
	if o.Retry.IsZero() {
		o.Retry = a.options.Retry
	}
	if err := o.Retry.Validate(); err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return nil, fault.Invalidf("HandlerOptions.Timeout", "is negative")
	}
	if err := a.add(name, handler{run: typed(fn), timeout: o.Timeout}); err != nil {
		return nil, err
	}
	return &Type[P]{alarms: a, name: name, retry: o.Retry}, nil
}

func (a *Alarms) add(name string, new handler) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, exists := a.handlers[name]; exists || name == Webhook {
		return fault.Invalidf("alarm type "+name, "has a handler already")
	}
	a.handlers[name] = new
	return nil
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

// Name returns the type's name.
func (t *Type[P]) Name() string { return t.name }

// Schedule schedules an alarm of the type at once. See Alarms.ScheduleIn.
func (t *Type[P]) Schedule(ctx context.Context, key Key, payload P, options *ScheduleOptions) error {
	return t.alarms.Schedule(ctx, key, t.name, payload, t.options(options))
}

// ScheduleIn schedules an alarm of the type in a unit of work. See
// Alarms.ScheduleIn.
func (t *Type[P]) ScheduleIn(tx *perdure.Tx, key Key, payload P, options *ScheduleOptions) error {
	return t.alarms.ScheduleIn(tx, key, t.name, payload, t.options(options))
}

func (t *Type[P]) options(options *ScheduleOptions) *ScheduleOptions {
	var o ScheduleOptions
	if options != nil {
		o = *options
	}
	if o.Retry.IsZero() {
		o.Retry = t.retry
	}
	return &o
}

// Info is what a handler can know of the alarm that it is called for.
type Info struct {
	// Alarm names the alarm, Type is its type.
	Alarm Key
	Type  string
	// Key is an idempotency key: unique to this tick of the alarm and the same for
	// every attempt.
	Key string
	// Scheduled is the time that the alarm is for, which is not later than now
	// unless it was fired by hand.
	Scheduled time.Time
	// Missed is how many further ticks have passed that will not be fired, because
	// this one stands for them or because they are dropped.
	Missed int
	// Attempt counts the executions of the handler for this tick from 1.
	Attempt int
	// MaxAttempts is how many there will be at most.
	MaxAttempts int
	// Crashes counts the executions that lost their process.
	Crashes int
	// Next is when a recurring alarm will be due after this, if all goes well.
	Next time.Time
	// Created is when the alarm was scheduled.
	Created time.Time
}

type infoKey struct{}

// FromContext returns what is known of the alarm that the handler is called for,
// from the context that it was given. It is the zero Info elsewhere.
func FromContext(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
