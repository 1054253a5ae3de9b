package fsm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// Info describes the instance for which a step runs.
type Info struct {
	ID         string
	Definition string
	Version    int
	Step       string
	// Attempt counts the runs of this step from 1: failed attempts and replays. It
	// is reset when the instance moves to another step.
	Attempt int
	// Failures is the number of earlier runs of this step that failed. The retry
	// policy counts these only. It is 0 in the first run of a step.
	Failures int
	// Crashes is the number of crashes while this step was running.
	Crashes int
	// Token is the token of the claim under which the step runs. The outcome is committed
	// only while the claim is valid.
	Token string
	// Awaited are the signals for which the instance waited, in order of arrival. All is
	// its whole inbox when it was claimed.
	Awaited, All []Signal
	// TimedOut is true if the wait reached its time limit.
	TimedOut bool
	// Rerun is true if the previous run of this step returned Done or Stop, but the inbox
	// held awaited signals that no step has received. A signal is awaited if the instance
	// has awaited its name at any time. That outcome was not committed. The step runs
	// again from the same state, and Awaited contains these signals too.
	Rerun bool
	// Fanouts is the number of times that the instance has spawned children.
	Fanouts int
	// Dropped are the children of the last fan-out that were not started because another
	// instance occupies their unique key.
	Dropped []DroppedChild
	// Cancelled is true from the cancel step on, if the instance was cancelled or has
	// passed its deadline. CancelReason is the reason.
	Cancelled    bool
	CancelReason string
	// Parent is the instance that spawned this one, or empty.
	Parent  string
	Created time.Time
}

// Signal is a message to an instance.
type Signal struct {
	Name    string
	Payload json.RawMessage
	Created time.Time
	// Received is true if an earlier run of a step has received the signal.
	Received bool

	seq int64
}

// Decode decodes the payload into to.
func (s Signal) Decode(to any) error { return json.Unmarshal(s.Payload, to) }

// DroppedChild is a child that was not started.
type DroppedChild struct {
	// Ordinal is its position among the children of the Spawn.
	Ordinal int `json:"ordinal"`
	// Existing is the instance that occupies its unique key.
	Existing string `json:"existing"`
}

// Run is one execution of a step: information about the instance, and its state.
type Run[S any] struct {
	Info
	// State is the instance's state. The step may change it; it is stored with the
	// outcome.
	State S

	execution *execution
	undecoded bool // the stored state does not decode: State is the zero value
}

// Children returns the children of the last fan-out, in the order in which they
// were spawned.
func (r *Run[S]) Children(ctx context.Context) ([]Child, error) { return r.execution.joined(ctx) }

// Next continues with another step.
func (r *Run[S]) Next(step string) Outcome { return Outcome{kind: kindNext, step: step} }

// Replay runs the same step again after a delay, with the new state and the same
// signals. A replay does not count as a failed attempt.
func (r *Run[S]) Replay(delay time.Duration) Outcome { return Outcome{kind: kindReplay, delay: delay} }

// Await waits for a signal with one of the names. Outcome.Then sets the step that receives
// it. Signals that this step received are consumed, unless Keep is added.
func (r *Run[S]) Await(names ...string) Outcome { return Outcome{kind: kindAwait, names: names} }

// Spawn starts children and waits until all of them are finished. Outcome.Then sets
// the step that receives their results.
func (r *Run[S]) Spawn(children ...ChildSpec) Outcome {
	return Outcome{kind: kindSpawn, children: children}
}

// Done finishes the instance with a result. If the inbox holds signals that the instance
// has awaited at some time and that no step has received, the instance does not finish:
// the step runs again and receives them. See Info.Rerun and Outcome.IgnoreSignals.
func (r *Run[S]) Done(result any) Outcome { return Outcome{kind: kindDone, result: result} }

// Stop finishes the instance as Stopped, with a reason. A stopped instance is not a dead
// letter: it is kept for Options.Retention and can be retried. Like Done, Stop does not
// finish an instance whose inbox holds awaited signals that no step has received.
func (r *Run[S]) Stop(reason string) Outcome { return Outcome{kind: kindStop, reason: reason} }

type kind int

const (
	kindNext kind = iota + 1
	kindReplay
	kindAwait
	kindSpawn
	kindDone
	kindStop
	kindFail  // not returned by a step: the instance failed
	kindRerun // not returned by a step: the instance could not finish

	// These are decisions of functions.
	kindPark      // waits for signals, or for its due time
	kindAgain     // starts again with another input
	kindCancelled // has handled its cancellation
)

// Outcome is the decision of a step. The methods of Run return outcomes; the methods of
// Outcome return a changed copy.
type Outcome struct {
	kind       kind
	step       string
	delay      time.Duration
	names      []string
	keep       bool
	timeout    *time.Duration
	children   []ChildSpec
	need       int
	cancelRest bool
	result     any
	reason     string
	ignore     bool
	with       []func(*perdure.Tx) error
}

// Then sets the step that follows an Await or a Spawn.
func (o Outcome) Then(step string) Outcome { o.step = step; return o }

// Within limits the wait of an Await or a Spawn. After that time the next step runs with
// TimedOut set. This is not an error.
func (o Outcome) Within(d time.Duration) Outcome { o.timeout = &d; return o }

// Keep makes an Await keep the signals that this step received. The next step receives
// them again, together with the new signal. Kept signals do not end the wait.
func (o Outcome) Keep() Outcome { o.keep = true; return o }

// Need makes a Spawn continue when n children are finished. The other children continue
// to run.
func (o Outcome) Need(n int) Outcome { o.need = n; return o }

// IgnoreSignals lets a Done or a Stop finish the instance even if its inbox holds awaited
// signals that no step has received. They stay with the instance until it is removed: see
// Machines.Inbox.
func (o Outcome) IgnoreSignals() Outcome { o.ignore = true; return o }

// CancelRest cancels unfinished children. With a Spawn, it cancels the children that are
// unfinished when the wait ends, because Need of them are finished or the time of Within
// has passed. With any other outcome, it cancels the children of the last Spawn. They are
// cancelled shortly after the outcome is committed.
func (o Outcome) CancelRest() Outcome { o.cancelRest = true; return o }

// validate checks everything that does not depend on the definition.
func (o Outcome) validate(step string) error {
	field := "outcome of step " + step
	if o.ignore && o.kind != kindDone && o.kind != kindStop {
		return fault.Invalidf(field, "must finish the instance to ignore signals")
	}
	if err := o.validateWith(field); err != nil {
		return err
	}
	switch o.kind {
	case kindNext:
		if o.step == "" {
			return fault.Invalidf(field, "must name a next step")
		}
	case kindReplay:
		return edge.Delay(field, o.delay)
	case kindAwait:
		return o.validateAwait(field)
	case kindSpawn:
		return o.validateSpawn(field)
	case kindDone, kindStop, kindFail, kindRerun, kindPark, kindAgain, kindCancelled:
	}
	return nil
}

func (o Outcome) validateAwait(field string) error {
	if len(o.names) == 0 {
		return fault.Invalidf(field, "must wait for at least one signal")
	}
	for _, name := range o.names {
		if err := edge.Name(field+": signal", name); err != nil {
			return err
		}
	}
	return o.validateWait(field)
}

func (o Outcome) validateSpawn(field string) error {
	if o.need < 0 || o.need > len(o.children) {
		return fault.Invalidf(field, "must wait for between 0 and %d children, got %d", len(o.children), o.need)
	}
	return o.validateWait(field)
}

func (o Outcome) validateWait(field string) error {
	if o.step == "" {
		return fault.Invalidf(field, "must name the step after the wait")
	}
	if o.timeout != nil {
		return edge.Delay(field, *o.timeout)
	}
	return nil
}
