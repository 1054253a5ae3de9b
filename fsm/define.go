package fsm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// DefaultRetry is the policy of definitions that set none and have no error handler:
// 20 attempts within about two days.
var DefaultRetry = retry.Default

// StepFunc is the code of a step. It returns the outcome, and the state in run is stored
// with it. A step may run more than once, so its side effects must be idempotent. An
// error or a panic goes to the error handler or, without one, to the retry policy.
// retry.Stop and retry.After take precedence over the retry policy.
type StepFunc[S any] func(ctx context.Context, run *Run[S]) (Outcome, error)

// ErrorFunc decides the outcome after a step failed. If it returns an error, the instance
// fails.
//
// It is also called if the stored state does not decode into S. In that case run.State is
// the zero value. Next, Await and Spawn replace the stored state; every other outcome
// keeps it.
type ErrorFunc[S any] func(ctx context.Context, run *Run[S], err error) (Outcome, error)

// StepOf is a named step of a definition. Step makes it.
type StepOf[S any] struct {
	name    string
	fn      StepFunc[S]
	options StepOptions
}

// StepOptions configure a step. The zero value of every field is its default.
type StepOptions struct {
	// Timeout is the time limit of the step. After that time the step's context is
	// cancelled and the attempt fails. Default: Options.Timeout.
	Timeout time.Duration
	// Retry is the policy for failures of this step. Like the definition's policy, it
	// applies to instances that are started from now on. Default: the definition's policy.
	Retry retry.Policy
	// System is the name of another system that the step calls, for example its host. Steps of
	// all definitions that call a system share a part of the slots of a queue. A system whose
	// steps fail repeatedly gets fewer slots until a step succeeds. Default: none.
	System string
}

// Step returns a step with a name and a function. A nil options means the defaults.
func Step[S any](name string, fn func(context.Context, *Run[S]) (Outcome, error), options *StepOptions) StepOf[S] {
	s := StepOf[S]{name: name, fn: fn}
	if options != nil {
		s.options = *options
	}
	return s
}

// DefinitionOptions configure a definition. The zero value of every field is its default.
type DefinitionOptions[S any] struct {
	// Retry is the policy for failed steps. It is used if there is no error handler.
	// Instances that were started before keep the policy that the definition had then;
	// Machines.ChangeRetry changes it. Default: DefaultRetry.
	Retry retry.Policy
	// OnError is the error handler. Default: the retry policy decides.
	OnError ErrorFunc[S]
	// OnCancel is the step that runs when an instance is cancelled or passes its deadline.
	// Such an instance is not finished: it continues with this step and its current state,
	// and its steps decide how it finishes. A wait is dropped; signals stay in the inbox.
	// Info.Cancelled and Info.CancelReason are set. Children are cancelled.
	//
	// If a step is running, the cancel step runs after that step has returned. It does not
	// wait for a step that does not return within 10 s after its context was cancelled.
	// Default: the instance is finished.
	OnCancel string
	// Queue is the queue of instances that are started without one. Default:
	// DefaultQueue.
	Queue string
	// KeepHistory stores the outcome of every step of the definition's instances, until the
	// instances are removed. It costs one row per step. Default: false.
	KeepHistory bool
}

// Definition is a state machine: its name, its version and its steps over a state of type
// S. An instance runs to completion on the version with which it was started. A process
// may register several versions.
type Definition[S any] struct {
	name    string
	version int
	steps   map[string]StepOf[S]
	order   []string
	options DefinitionOptions[S]
}

// Define returns a definition. Its instances start with the first step. A nil options
// means the defaults. Mistakes are reported by Machines.Register and Start.
func Define[S any](name string, version int, options *DefinitionOptions[S], steps ...StepOf[S]) *Definition[S] {
	d := &Definition[S]{name: name, version: version, steps: map[string]StepOf[S]{}}
	if options != nil {
		d.options = *options
	}
	edge.Default(&d.options.Queue, DefaultQueue)
	if d.options.Retry.IsZero() {
		d.options.Retry = DefaultRetry
	}
	for _, s := range steps {
		d.steps[s.name] = s
		d.order = append(d.order, s.name)
	}
	return d
}

// Name returns the definition's name.
func (d *Definition[S]) Name() string { return d.name }

// Version returns the definition's version.
func (d *Definition[S]) Version() int { return d.version }

// Steps returns the names of the steps in the order of their definition.
func (d *Definition[S]) Steps() []string { return append([]string(nil), d.order...) }

func (d *Definition[S]) validate() error {
	if err := edge.Name("definition", d.name); err != nil {
		return err
	}
	if err := edge.Name("queue", d.options.Queue); err != nil {
		return err
	}
	if err := edge.Version("version of fsm "+d.name, d.version); err != nil {
		return err
	}
	if len(d.order) == 0 {
		return fault.Invalidf("fsm "+d.name, "must have at least one step")
	}
	if len(d.order) != len(d.steps) {
		return fault.Invalidf("fsm "+d.name, "must not have a step twice")
	}
	for name, s := range d.steps {
		if err := edge.Name("step", name); err != nil {
			return err
		}
		if err := validSystem(s.options.System); err != nil {
			return err
		}
		if s.fn == nil || s.options.Timeout < 0 {
			return fault.Invalidf("step "+name, "must have a function and a timeout that is not negative")
		}
		if err := s.options.Retry.Validate(); err != nil && !s.options.Retry.IsZero() {
			return fmt.Errorf("step %s: %w", name, err)
		}
	}
	if d.options.OnCancel != "" && !d.has(d.options.OnCancel) {
		return fault.Invalidf("fsm "+d.name, "must have its cancel step %q", d.options.OnCancel)
	}
	return d.options.Retry.Validate()
}

// machine is a definition without its type parameter.
type machine interface {
	Name() string
	Version() int
	Steps() []string
	validate() error
	has(step string) bool
	system(step string) string
	keepsHistory() bool
	describe() store.RecordedDefinition
	policies() policies
	// execute runs the step of an instance and calls then with its outcome, serialized
	// and checked.
	execute(ctx context.Context, e *execution, then func(*decision, error))
	// recoverFrom lets the error handler or the retry policy decide after a failure.
	recoverFrom(ctx context.Context, e *execution, cause error, then func(*decision, error))
}

func (d *Definition[S]) has(step string) bool { _, ok := d.steps[step]; return ok }

func (d *Definition[S]) system(step string) string { return d.steps[step].options.System }

// execute implements machine.
func (d *Definition[S]) execute(ctx context.Context, e *execution, then func(*decision, error)) {
	if err := e.sealed(); err != nil {
		then(nil, err)
		return
	}
	run, err := newRun[S](e)
	if err != nil {
		d.unread(ctx, e, err, then)
		return
	}
	d.step(ctx, e, run, func(outcome Outcome, err error) {
		var decided *decision
		if err == nil {
			decided, err = d.decide(e, run, outcome)
		}
		if err == nil || stopped(ctx) || isUnreadable(err) || work.IsUndecided(err) {
			then(decided, err)
			return
		}
		d.recoverFrom(ctx, e, err, then)
	})
}

func (d *Definition[S]) step(ctx context.Context, e *execution, run *Run[S], then func(Outcome, error)) {
	step := d.steps[e.instance.Step]
	timeout := step.options.Timeout
	edge.Default(&timeout, e.machines.options.Timeout)
	ctx, span := e.traced(ctx)
	var outcome Outcome
	e.call(ctx, timeout, func(ctx context.Context) (err error) {
		outcome, err = step.fn(ctx, run)
		return err
	}, func(err error) {
		span.End(err)
		if err != nil { // the step may still be running and write outcome
			then(Outcome{}, err)
			return
		}
		then(outcome, nil)
	})
}

// recoverFrom lets the error handler, or else the retry policy, decide. It decodes a
// fresh copy of the stored state: changes that the failed step made to its copy are
// discarded.
func (d *Definition[S]) recoverFrom(ctx context.Context, e *execution, cause error, then func(*decision, error)) {
	run, err := newRun[S](e)
	if err != nil {
		then(failed(err), nil)
		return
	}
	if d.options.OnError == nil {
		then(d.again(ctx, e, run, cause))
		return
	}
	d.handle(ctx, e, run, cause, then)
}

// handle calls the error handler.
func (d *Definition[S]) handle(ctx context.Context, e *execution, run *Run[S], cause error, then func(*decision, error)) {
	var outcome Outcome
	e.call(ctx, e.machines.options.Timeout, func(ctx context.Context) (err error) {
		outcome, err = d.options.OnError(ctx, run, cause)
		return err
	}, func(err error) {
		var decided *decision
		if err == nil {
			decided, err = d.decide(e, run, outcome)
		}
		if decided, err = handled(ctx, decided, cause, err); decided != nil {
			decided.handled = true
		}
		then(decided, err)
	})
}

// again returns the decision of the retry policy.
func (d *Definition[S]) again(ctx context.Context, e *execution, run *Run[S], cause error) (*decision, error) {
	policy := e.machines.policyOf(ctx, e.instance, d.policies())
	delay, again := policy.Decide(e.instance.Failures+1, cause, e.machines.options.Random())
	if !again {
		return failed(cause), nil
	}
	decided, err := d.decide(e, run, run.Replay(delay))
	if err == nil {
		decided.err = edge.Message(cause.Error())
	}
	return decided, err
}

// handled returns the decision after the error handler returned, with or without an
// error.
func handled(ctx context.Context, decided *decision, cause, err error) (*decision, error) {
	switch {
	case err == nil && decided.err == "":
		decided.err = edge.Message(cause.Error())
		return decided, nil
	case err == nil, stopped(ctx):
		return decided, err
	}
	return failed(fmt.Errorf("error handler: %w (after: %w)", err, cause)), nil
}

// decide checks and serializes an outcome. Serializing calls methods of the user's types,
// so panics are contained.
func (d *Definition[S]) decide(e *execution, run *Run[S], o Outcome) (decided *decision, err error) {
	err = core.Call(func() (err error) {
		decided, err = d.encodeOutcome(e, run, o)
		return err
	})
	return decided, err
}

func (d *Definition[S]) encodeOutcome(e *execution, run *Run[S], o Outcome) (*decision, error) {
	if o.kind == 0 {
		return nil, fault.Invalidf("step "+e.instance.Step, "must return an outcome")
	}
	decided := &decision{outcome: o}
	if o.step != "" && !d.has(o.step) {
		return nil, fault.Invalidf("step "+e.instance.Step, "must lead to a step of fsm %s version %d, got %q", d.name, d.version, o.step)
	}
	if err := o.validate(e.instance.Step); err != nil {
		return nil, err
	}
	if o.cancelRest && o.kind != kindSpawn && e.instance.Fanout == 0 {
		return nil, fault.Invalidf("outcome of step "+e.instance.Step, "must not cancel the rest of the children: the instance has spawned none")
	}
	state, err := d.stateOf(e, run, o)
	if err != nil {
		return nil, err
	}
	switch o.kind {
	case kindDone:
		decided.result, err = edge.Marshal("result", o.result, e.machines.options.MaxState)
	case kindStop:
		decided.err = edge.Message(o.reason)
	default:
		decided.state = state
		decided.children, err = e.children(o.children)
		return decided, err
	}
	if string(state) != e.instance.State {
		decided.state = state
	}
	return decided, err
}

// newRun decodes the stored state for a step.
func newRun[S any](e *execution) (*Run[S], error) {
	run := &Run[S]{execution: e}
	e.inform(&run.Info)
	err := core.Call(func() error { return json.Unmarshal([]byte(e.instance.State), &run.State) })
	if err != nil {
		return nil, &undecodedError{err}
	}
	return run, nil
}
