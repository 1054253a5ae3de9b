package statechart

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/fault"
)

// A Step is what a call left to be done outside, each list in order.
type Step struct {
	// Timers are to be scheduled and cancelled, one after the other.
	Timers []TimerOp `json:"timers,omitempty"`
	// Effects are to be run, after the new snapshot is stored.
	Effects []EffectCall `json:"effects,omitempty"`
	// Invocations are to be started and stopped.
	Invocations []InvokeOp `json:"invocations,omitempty"`
	// Emitted are events for whoever watches the actors.
	Emitted []Emitted `json:"emitted,omitempty"`
	// Logs are messages for whoever reads logs.
	Logs []Log `json:"logs,omitempty"`
	// Dropped says that nobody was there any more for what was delivered: the
	// root has ended, or the actor that a timer or a result was for has.
	Dropped bool `json:"dropped,omitempty"`
}

// TimerKind says what to do with a timer.
type TimerKind string

// What to do with timers.
const (
	// Schedule stores the timer. One with the same Key is replaced.
	Schedule TimerKind = "schedule"
	// Cancel removes the timer with the same Key, if there is one.
	Cancel TimerKind = "cancel"
	// Remove removes the timer with the same Key, also one without an id.
	Remove TimerKind = "remove"
	// CancelAll removes all timers with the same Path and Generation.
	CancelAll TimerKind = "cancelAll"
)

// A TimerOp changes the set of pending timers.
type TimerOp struct {
	Kind  TimerKind `json:"kind"`
	Timer Timer     `json:"timer"`
}

// A Timer is an event that is to be delivered later, by [Tree.Fire]. Due timers
// are to be fired by Due, then by Sequence.
type Timer struct {
	// Path and Generation are those of the actor that scheduled it.
	Path       string `json:"path"`
	Generation int64  `json:"generation"`
	// ID is the send id, "" if it has none: then it can only be cancelled with
	// all others.
	ID string `json:"id,omitempty"`
	// Sequence is unique in the tree, and larger for what is scheduled later.
	Sequence int64 `json:"sequence,omitempty"`
	// Target and TargetGeneration are those of the actor that gets the event.
	Target           string `json:"target"`
	TargetGeneration int64  `json:"targetGeneration,omitempty"`
	// Event is what it gets.
	Event Event `json:"event"`
	// Delay is how long to wait, in milliseconds.
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
		return Timer{}, fault.Invalidf("timer", "is not an object")
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

// Key names the timer among those of its tree. A timer that is scheduled again
// under its id has the same key.
func (t Timer) Key() string {
	id := "#" + t.ID
	if t.ID == "" {
		id = "~" + strconv.FormatInt(t.Sequence, 10)
	}
	return t.Path + "@" + strconv.FormatInt(t.Generation, 10) + id
}

// An EffectCall is one run of an effect.
type EffectCall struct {
	// Path is that of the actor.
	Path string `json:"path"`
	// Name is that of the action.
	Name string `json:"name"`
	// Params are those of the action, computed.
	Params map[string]any `json:"params,omitempty"`
	// Sequence is unique in the tree: with the tree's name it is an idempotency
	// key.
	Sequence int64 `json:"sequence"`
}

// An InvokeOp starts or stops an invocation. The result of one that was started is given
// to [Tree.Complete] or [Tree.Fail], with its Path and Generation.
type InvokeOp struct {
	Start      bool   `json:"start"`
	Path       string `json:"path"`
	Generation int64  `json:"generation"`
	// Src is the name of the actor.
	Src string `json:"src"`
	// Input is what the invocation gets.
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
