package fsm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// Info is what a step can know of the instance that it runs for.
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
	// Crashes counts how often a process was lost while it ran this step.
	Crashes int
	// Token is that of the claim under which the step runs. What a step decides
	// counts only while its claim is held.
	Token string
	// Awaited are the signals that the instance waited for, in order of
	// arrival; All is its whole inbox when it was claimed.
	Awaited, All []Signal
	// TimedOut says that the wait ended without what was waited for.
	TimedOut bool
	// Rerun is true if the previous run of this step ended the instance with Done
	// or Stop while signals arrived that the instance has awaited at some time and
	// that no step was given. The end was not committed. The step runs again from
	// the same state, and Awaited contains these signals too.
	Rerun bool
	// Fanouts counts how often the instance has spawned children.
	Fanouts int
	// Dropped are the children of the last fan-out that were not started
	// because their unique key was taken.
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
	// Received is true if an earlier run of a step was given the signal.
	Received bool

	seq int64
}

// Decode reads the payload into to.
func (s Signal) Decode(to any) error { return json.Unmarshal(s.Payload, to) }

// DroppedChild is a child that was not started.
type DroppedChild struct {
	// Ordinal is its place among the children that were to be spawned.
	Ordinal int `json:"ordinal"`
	// Existing is the instance that has its unique key.
	Existing string `json:"existing"`
}

// Run is one execution of a step: what it knows, and the state that it changes.
type Run[S any] struct {
	Info
	// State is the instance's state. What the step leaves in it is stored with
	// the outcome.
	State S

	execution *execution
	undecoded bool // the stored state does not decode: State is the zero value
}

// Children returns the children of the last fan-out, in the order in which they
// were spawned.
func (r *Run[S]) Children(ctx context.Context) ([]Child, error) { return r.execution.joined(ctx) }

// Next goes on with another step.
func (r *Run[S]) Next(step string) Outcome { return Outcome{kind: kindNext, step: step} }

// Replay runs the same step again after a delay, with the new state and the same
// signals. A replay does not count as a failed attempt.
func (r *Run[S]) Replay(delay time.Duration) Outcome { return Outcome{kind: kindReplay, delay: delay} }

// Await waits for a signal of one of the names; say with Then which step shall
// get it. Signals that this step was given are consumed, unless Keep is added.
func (r *Run[S]) Await(names ...string) Outcome { return Outcome{kind: kindAwait, names: names} }

// Spawn starts children and waits until all of them have ended; say with Then
// which step shall get their results.
func (r *Run[S]) Spawn(children ...ChildSpec) Outcome {
	return Outcome{kind: kindSpawn, children: children}
}

// Done ends the instance with a result. If the inbox then holds signals that the
// instance has awaited at some time and that no step was given, the instance does
// not end: the step runs again and is given them. See Info.Rerun and
// Outcome.IgnoreSignals.
func (r *Run[S]) Done(result any) Outcome { return Outcome{kind: kindDone, result: result} }

// Stop ends the instance as Stopped, with a reason. That is an intended end, not a
// dead letter: the instance is kept for Options.Retention and can be retried. Like
// Done, it does not end an instance whose inbox holds awaited signals that no step
// was given.
func (r *Run[S]) Stop(reason string) Outcome { return Outcome{kind: kindStop, reason: reason} }

type kind int

const (
	kindNext kind = iota + 1
	kindReplay
	kindAwait
	kindSpawn
	kindDone
	kindStop
	kindFail  // not by a step: it gave up
	kindRerun // not by a step: it could not end
)

// Outcome is what a step wants to happen. Make it with the methods of Run; its
// own methods return a changed copy.
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

// Then says which step follows an Await or a Spawn.
func (o Outcome) Then(step string) Outcome { o.step = step; return o }

// Within bounds the wait of an Await or a Spawn. When it is over, the next step
// runs with TimedOut: that is a wake, not an error.
func (o Outcome) Within(d time.Duration) Outcome { o.timeout = &d; return o }

// Keep makes an Await keep the signals that this step was given, so that the
// next one gets them again together with the new one. They do not wake it.
func (o Outcome) Keep() Outcome { o.keep = true; return o }

// Need lets a Spawn go on when that many children have ended; the others run on.
func (o Outcome) Need(n int) Outcome { o.need = n; return o }

// IgnoreSignals lets a Done or a Stop end the instance even if its inbox holds
// awaited signals that no step was given. They stay with the instance until it is
// removed: see Machines.Inbox.
func (o Outcome) IgnoreSignals() Outcome { o.ignore = true; return o }

// CancelRest cancels children that have not ended. With a Spawn, it applies to the
// children that are left when the wait ends, because Need of them have ended or the
// time of Within is over. With any other outcome, it applies to the children of the
// last Spawn. They end shortly after the outcome is committed.
func (o Outcome) CancelRest() Outcome { o.cancelRest = true; return o }

// validate checks what does not depend on the machine.
func (o Outcome) validate(step string) error {
	field := "outcome of step " + step
	if o.ignore && o.kind != kindDone && o.kind != kindStop {
		return fault.Invalidf(field, "ignores signals but does not end the instance")
	}
	if err := o.validateWith(field); err != nil {
		return err
	}
	switch o.kind {
	case kindNext:
		if o.step == "" {
			return fault.Invalidf(field, "names no next step")
		}
	case kindReplay:
		return edge.Delay(field, o.delay)
	case kindAwait:
		return o.validateAwait(field)
	case kindSpawn:
		return o.validateSpawn(field)
	case kindDone, kindStop, kindFail, kindRerun:
	}
	return nil
}

func (o Outcome) validateAwait(field string) error {
	if len(o.names) == 0 {
		return fault.Invalidf(field, "waits for no signal")
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
		return fault.Invalidf(field, "needs %d of %d children", o.need, len(o.children))
	}
	return o.validateWait(field)
}

func (o Outcome) validateWait(field string) error {
	if o.step == "" {
		return fault.Invalidf(field, "does not say which step comes then")
	}
	if o.timeout != nil {
		return edge.Delay(field, *o.timeout)
	}
	return nil
}
