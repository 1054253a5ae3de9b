package statechart

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/fault"
)

// A Tree is an actor with its children, between two events. It is not safe for concurrent use.
//
// If a call returns a *fault.Invalid, the tree is unchanged. After any other error, such as a
// *LimitError, the tree is unusable and must be restored from the last snapshot.
type Tree struct {
	machine    *Machine
	root       *actor
	bySystemID map[string]*actor
	sequence   int64

	held int // size of all contexts, or more

	// of the current call
	now        int64
	step       *Step
	events     int
	created    int
	outputs    int
	produced   int // bytes
	polls      int
	heldBefore int
	interrupt  func() bool
	broken     error
}

// Start starts the machine as the root of a new tree.
func (m *Machine) Start(now int64, input any) (*Tree, *Step, error) {
	input, err := Canonical(input)
	if err != nil {
		return nil, nil, fault.Invalidf("input", "%v", err)
	}
	t := &Tree{machine: m}
	t.root = &actor{tree: t, logic: logic{machine: m}, input: input}
	step, err := t.call(now, func() {
		if err := t.root.create(); err != nil {
			t.broken = err
			return
		}
		t.root.start()
	})
	return t, step, err
}

// Send sends an event from outside to the root. An event that only the machine may send returns
// a *fault.Invalid.
func (t *Tree) Send(now int64, e Event) (*Step, error) {
	if err := e.checkOutside(); err != nil {
		return nil, err
	}
	if len(e.Data) > 0 {
		v, err := Canonical(e.Data)
		if err != nil {
			return nil, fault.Invalidf("event", "%v", err)
		}
		e.Data = v.(map[string]any)
	}
	return t.deliver(now, t.root, &message{Event: e})
}

// Fire delivers a due timer to its target actor. now is the time while the event is handled.
// Pass the timer's Due as now so that a chain of timers keeps its times.
func (t *Tree) Fire(now int64, timer Timer) (*Step, error) {
	return t.deliver(now, t.find(timer.Target, timer.TargetGeneration), &message{Event: timer.Event})
}

// Complete finishes an invocation with its output.
func (t *Tree) Complete(now int64, path string, generation int64, output any) (*Step, error) {
	return t.result(now, path, generation, taskDone, "output", output)
}

// Fail finishes an invocation with an error, which can be any value.
func (t *Tree) Fail(now int64, path string, generation int64, err any) (*Step, error) {
	if e, ok := err.(error); ok {
		err = thrown(e)
	}
	return t.result(now, path, generation, taskFailed, "error", err)
}

func (t *Tree) result(now int64, path string, generation int64, kind, key string, v any) (*Step, error) {
	v, err := Canonical(v)
	if err != nil {
		return nil, fault.Invalidf(key, "%v", err)
	}
	to := t.find(path, generation)
	if to != nil && to.logic.machine != nil {
		return nil, fault.Invalidf("path", "must be the path of an invocation, got %q", path)
	}
	return t.deliver(now, to, newMessage(kind, map[string]any{key: v}))
}

// Stop stops the root and its children without running exit actions.
func (t *Tree) Stop(now int64) (*Step, error) {
	return t.call(now, func() {
		t.step.Dropped = t.root.phase != running
		t.root.stop()
	})
}

// Abort ends the root with an error from outside and stops its children, without running exit
// actions. It is for a tree that was restored after a *LimitError.
func (t *Tree) Abort(now int64, err any) (*Step, error) {
	if e, ok := err.(error); ok {
		err = thrown(e)
	}
	v, bad := Canonical(err)
	if bad != nil {
		return nil, fault.Invalidf("error", "%v", bad)
	}
	return t.call(now, func() {
		if t.step.Dropped = t.root.phase != running; t.step.Dropped {
			return
		}
		for _, c := range t.root.snap.children {
			t.root.stopChild(c)
		}
		t.root.snap.children = nil
		t.root.snap.status, t.root.snap.err = Failed, v
		t.root.update()
	})
}

func (t *Tree) deliver(now int64, to *actor, m *message) (*Step, error) {
	return t.call(now, func() {
		if to == nil || to.phase != running {
			t.step.Dropped = true
			return
		}
		to.receive(m)
	})
}

// call runs one call until the tree is stable.
func (t *Tree) call(now int64, fn func()) (*Step, error) {
	if t.broken != nil {
		return nil, fmt.Errorf("tree must be restored: %w", t.broken)
	}
	t.now, t.step, t.events, t.created, t.outputs, t.produced, t.polls = now, &Step{}, 0, 0, 0, 0, 0
	t.heldBefore = t.held
	t.limitTime()
	fn()
	step := t.step
	t.step, t.interrupt = nil, nil
	return step, t.broken
}

// limitTime starts the time limit of a call.
func (t *Tree) limitTime() {
	if fn := t.machine.limits.interrupt; fn != nil {
		t.interrupt = fn()
	}
}

func (t *Tree) next() int64 {
	t.sequence++
	return t.sequence
}

// Skip skips n sequence numbers and returns the last one. It is for a tree that was restored
// from an old snapshot: a number must not be used twice, because it is an idempotency key.
func (t *Tree) Skip(n int64) int64 {
	t.sequence += max(n, 0)
	return t.sequence
}

func (t *Tree) timers(o TimerOp) { t.step.Timers = append(t.step.Timers, o) }

// find returns the actor at a path if it has the generation.
func (t *Tree) find(path string, generation int64) *actor {
	a := t.root
	for path != "" && a != nil {
		var id string
		id, path, _ = strings.Cut(path, "/")
		a = a.snap.children.get(pathUnescaper.Replace(id))
	}
	if a == nil || a.generation != generation {
		return nil
	}
	return a
}

var pathUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// Can reports whether the root has a transition for an event that is not forbidden. It returns
// an error if a guard fails.
func (t *Tree) Can(e Event) (bool, error) {
	if t.root.snap.status != Active {
		return false, nil
	}
	r := t.root.runner()
	r.prepare(&t.root.snap, &message{Event: e})
	before := t.broken
	t.limitTime()
	ts, err := r.selectFor(r.event)
	t.broken, t.interrupt = before, nil // the state has not changed
	if err != nil {
		return false, err
	}
	for _, tr := range ts {
		if tr.targeted || len(tr.actions) > 0 {
			return true, nil
		}
	}
	return false, nil
}
