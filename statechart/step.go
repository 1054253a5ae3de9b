package statechart

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/fault"
)

// A Step holds the operations that a call leaves to its caller. Each list is in order.
type Step struct {
	// Timers are the timer operations to apply, in order.
	Timers []TimerOp `json:"timers,omitempty"`
	// Effects are the effects to run after the new snapshot is stored.
	Effects []EffectCall `json:"effects,omitempty"`
	// Invocations are the invocations to start and stop.
	Invocations []InvokeOp `json:"invocations,omitempty"`
	// Emitted are the events emitted to observers of the actors.
	Emitted []Emitted `json:"emitted,omitempty"`
	// Logs are the log messages.
	Logs []Log `json:"logs,omitempty"`
	// Dropped is true if the delivery had no receiver: the root has finished, or the actor that
	// should receive a timer or a result has finished.
	Dropped bool `json:"dropped,omitempty"`
}

// TimerKind is the kind of a timer operation.
type TimerKind string

// The kinds of timer operations.
const (
	// Schedule stores the timer. It replaces a timer with the same Key.
	Schedule TimerKind = "schedule"
	// Cancel removes the timer with the same Key, if there is one.
	Cancel TimerKind = "cancel"
	// Remove removes the timer with the same Key, even if the timer has no id.
	Remove TimerKind = "remove"
	// CancelAll removes all timers with the same Path and Generation.
	CancelAll TimerKind = "cancelAll"
)

// A TimerOp changes the set of pending timers.
type TimerOp struct {
	Kind  TimerKind `json:"kind"`
	Timer Timer     `json:"timer"`
}

// A Timer is an event to be delivered later by [Tree.Fire]. Due timers must be fired in the
// order of Due, then Sequence.
type Timer struct {
	// Path and Generation identify the actor that scheduled the timer.
	Path       string `json:"path"`
	Generation int64  `json:"generation"`
	// ID is the send id. A timer with the id "" can only be cancelled by CancelAll.
	ID string `json:"id,omitempty"`
	// Sequence is unique in the tree and increases with every scheduled timer.
	Sequence int64 `json:"sequence,omitempty"`
	// Target and TargetGeneration identify the actor that receives the event.
	Target           string `json:"target"`
	TargetGeneration int64  `json:"targetGeneration,omitempty"`
	// Event is the event to deliver.
	Event Event `json:"event"`
	// Delay is the delay in milliseconds.
	Delay int64 `json:"delay"`
	// Due is the time of scheduling plus Delay.
	Due int64 `json:"due"`
}

// ReadTimer reads a timer that was written as JSON.
func ReadTimer(raw []byte) (Timer, error) {
	v, err := decode("timer", raw)
	if err != nil {
		return Timer{}, err
	}
	o, ok := v.(*object)
	if !ok {
		return Timer{}, fault.Invalidf("timer", "must be an object")
	}
	var t Timer
	if t.Event, err = eventFrom(plain(o.value("event"))); err != nil {
		return Timer{}, fault.Invalidf("timer.event", "%v", err)
	}
	t.Path, _ = o.value("path").(string)
	t.Generation, _ = o.value("generation").(int64)
	t.ID, _ = o.value("id").(string)
	t.Sequence, _ = o.value("sequence").(int64)
	t.Target, _ = o.value("target").(string)
	t.TargetGeneration, _ = o.value("targetGeneration").(int64)
	t.Delay, _ = o.value("delay").(int64)
	t.Due, _ = o.value("due").(int64)
	return t, nil
}

// Key identifies the timer in its tree. A timer that is scheduled again under its id has the
// same key.
func (t Timer) Key() string {
	id := "#" + t.ID
	if t.ID == "" {
		id = "~" + strconv.FormatInt(t.Sequence, 10)
	}
	return t.Path + "@" + strconv.FormatInt(t.Generation, 10) + id
}

// An EffectCall is one execution of an effect.
type EffectCall struct {
	// Path is the path of the actor.
	Path string `json:"path"`
	// Name is the name of the action.
	Name string `json:"name"`
	// Params are the computed params of the action.
	Params map[string]any `json:"params,omitempty"`
	// Sequence is unique in the tree. Together with the tree's name it is an idempotency key.
	Sequence int64 `json:"sequence"`
}

// An InvokeOp starts or stops an invocation. The result of a started invocation is passed to
// [Tree.Complete] or [Tree.Fail] with its Path and Generation.
type InvokeOp struct {
	Start      bool   `json:"start"`
	Path       string `json:"path"`
	Generation int64  `json:"generation"`
	// Src is the name of the actor.
	Src string `json:"src"`
	// Input is the input of the invocation.
	Input any `json:"input,omitempty"`
}

// An Emitted is an event that an actor emitted.
type Emitted struct {
	Path  string `json:"path"`
	Event Event  `json:"event"`
}

// A Log is a message that an actor logged.
type Log struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (a *actor) task(start bool) InvokeOp {
	return InvokeOp{Start: start, Path: a.path(), Generation: a.generation, Src: a.src, Input: a.input}
}

// path returns the ids from the root to the actor. Slashes in ids are written
// as ~1, and tildes as ~0.
func (a *actor) path() string {
	switch {
	case a.parent == nil:
		return ""
	case a.parent.parent == nil:
		return pathEscaper.Replace(a.id)
	default:
		return a.parent.path() + "/" + pathEscaper.Replace(a.id)
	}
}

var pathEscaper = strings.NewReplacer("~", "~0", "/", "~1")
