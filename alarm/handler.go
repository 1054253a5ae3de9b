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
	// Retry is the retry policy of alarms that are scheduled through their Type without a
	// policy. Default: Options.Retry.
	Retry retry.Policy
	// Timeout is the time limit of the handler. After it, the context is cancelled and
	// the attempt has failed. Default: Options.Timeout.
	Timeout time.Duration
}

// Type is a type of alarms with payloads of type P.
type Type[P any] struct {
	alarms *Alarms
	name   string
	retry  retry.Policy
}

// handler is a handler without its payload type.
type handler struct {
	run     func(ctx context.Context, payload []byte) error
	timeout time.Duration
}

// Handle sets the handler of a type of alarms in this process and returns a Type, which
// schedules such alarms. The payload is stored as JSON. If fn returns an error or panics,
// the attempt has failed, and the retry policy decides whether and when to retry. Alarms
// of a type without a handler in this process wait for a process that has the handler.
func Handle[P any](a *Alarms, name string, fn func(context.Context, P) error, options *HandlerOptions) (*Type[P], error) {
	if a == nil || fn == nil {
		return nil, fault.Invalidf("alarm type "+name, "must have a handler and an Alarms")
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
		return nil, fault.Invalidf("HandlerOptions.Timeout", "must not be negative, got %v", o.Timeout)
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
		return fault.Invalidf("alarm type "+name, "already has a handler")
	}
	a.handlers[name] = new
	return nil
}

// Unhandle removes the handler of a type from this process. Running handlers are not interrupted.
// Alarms of the type wait for a process that has a handler.
func (a *Alarms) Unhandle(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.handlers, name)
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

// Name returns the type's name.
func (t *Type[P]) Name() string { return t.name }

// Schedule schedules an alarm of the type in its own unit of work. See Alarms.ScheduleIn.
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

// Info describes the alarm that a handler is called for.
type Info struct {
	// Alarm is the key of the alarm, Type is its type.
	Alarm Key
	Type  string
	// Key is an idempotency key. It is unique to this tick of the alarm and the same for
	// every attempt.
	Key string
	// Scheduled is the time for which the alarm was scheduled. It is not later than now
	// unless the alarm was fired manually.
	Scheduled time.Time
	// Missed is the number of other passed ticks that will not be fired, because this
	// tick replaces them or because they are dropped.
	Missed int
	// Attempt is the number of this execution of the handler for this tick, counted from
	// 1.
	Attempt int
	// MaxAttempts is the maximum number of attempts.
	MaxAttempts int
	// Crashes is the number of executions that crashed.
	Crashes int
	// Next is the time when a recurring alarm will be due next, if this attempt succeeds.
	Next time.Time
	// Created is the time when the alarm was scheduled.
	Created time.Time
}

type infoKey struct{}

// FromContext returns the Info of the alarm that is being fired. ctx is the context of
// its handler. For any other context it returns the zero Info.
func FromContext(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
