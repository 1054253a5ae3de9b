package statechart

import (
	"errors"
	"fmt"
)

// The limits of one call. They bound the work that one event can cause.
const (
	// DefaultMaxContext is the default maximum size of the context of an actor in bytes.
	DefaultMaxContext = 2 << 20
	// DefaultMaxOutputs is the default maximum number of timers, effects, emitted events, log
	// entries and sends of one call.
	DefaultMaxOutputs = 10_000
	// maxProduced is the maximum total size of the values that a call computes for events,
	// effects, log entries, inputs and outputs, in bytes.
	maxProduced = 8 << 20
	// pollEvery is the number of actions, evaluations and loop iterations between two calls of
	// the function that Options.Interrupt returned.
	pollEvery = 16
)

// A Limit names a limit of a machine.
type Limit string

// The limits.
const (
	// LimitContext is Options.MaxContext.
	LimitContext Limit = "context"
	// LimitSnapshot is MaxDocument. It applies to the total of the contexts and inputs of all
	// actors of a tree, and to the encoded snapshot.
	LimitSnapshot Limit = "snapshot"
	// LimitNesting is the maximum nesting of a value.
	LimitNesting Limit = "nesting"
	// LimitExpression is the number of bytes that one expression may compute: twice
	// Options.MaxContext.
	LimitExpression Limit = "expression"
	// LimitEvents is Options.MaxEvents.
	LimitEvents Limit = "events"
	// LimitOutputs is Options.MaxOutputs.
	LimitOutputs Limit = "outputs"
	// LimitOutputSize is the total size of the values that a call computes.
	LimitOutputSize Limit = "output size"
	// LimitTime is Options.Interrupt.
	LimitTime Limit = "time"
)

// A LimitError is returned by a call that was stopped because the machine exceeded a limit. The
// results of the call are discarded, and the tree is unusable: restore it from the last
// snapshot. [Tree.Abort] then ends it with the error as the reason.
type LimitError struct {
	Limit Limit
	// Max is the maximum allowed value, in the unit of the limit: bytes, levels or a number. It
	// is 0 for LimitTime.
	Max int64
	// Path is the path of the actor that exceeded the limit.
	Path string
}

func (e *LimitError) Error() string {
	what := map[Limit]string{
		LimitContext: "a context of %d bytes", LimitSnapshot: "a snapshot of %d bytes", LimitNesting: "values nested %d levels deep",
		LimitExpression: "%d bytes in one expression", LimitEvents: "%d events and microsteps in one step",
		LimitOutputs: "%d outputs in one step", LimitOutputSize: "%d bytes of output in one step",
	}[e.Limit]
	text := "machine exceeds the time limit of a step"
	if what != "" {
		text = "machine exceeds the limit of " + fmt.Sprintf(what, e.Max)
	}
	if e.Path != "" {
		text += " in child " + e.Path
	}
	if e.Limit == LimitEvents {
		text += ": " + ErrRunaway.Error()
	}
	return text
}

// Is reports whether target is ErrRunaway and the limit is LimitEvents.
func (e *LimitError) Is(target error) bool { return target == ErrRunaway && e.Limit == LimitEvents } //nolint:errorlint // Is compares identities

// ErrRunaway matches the LimitError of a tree whose actors exceed Options.MaxEvents.
var ErrRunaway = errors.New("actors of the tree send each other events without end")

// exceed stops the call.
func (t *Tree) exceed(limit Limit, most int64, a *actor) error {
	if t.broken == nil {
		e := &LimitError{Limit: limit, Max: most}
		if a != nil {
			e.Path = a.path()
		}
		t.broken = e
	}
	return t.broken
}

// spend counts an event or a microstep of an actor.
func (t *Tree) spend(a *actor) error {
	if t.broken != nil {
		return t.broken
	}
	if t.events++; t.events > t.machine.limits.events {
		return t.exceed(LimitEvents, int64(t.machine.limits.events), a)
	}
	return t.poll()
}

// poll returns an error if the call was stopped or its time limit has passed.
func (t *Tree) poll() error {
	if t.broken != nil || t.interrupt == nil {
		return t.broken
	}
	if t.polls++; t.polls%pollEvery == 0 && t.interrupt() {
		return t.exceed(LimitTime, 0, nil)
	}
	return nil
}

// count counts an output of an actor.
func (t *Tree) count(a *actor) error {
	if t.outputs++; t.outputs > t.machine.limits.outputs {
		return t.exceed(LimitOutputs, int64(t.machine.limits.outputs), a)
	}
	return t.broken
}

// charge counts the size of a value that an actor computed for other receivers.
func (t *Tree) charge(a *actor, v any) error {
	n, err := t.measure(a, v, maxProduced-t.produced, LimitOutputSize, maxProduced)
	t.produced += n
	return err
}

// measure returns the size of a value. It stops at the first byte beyond most, so the cost of
// measuring is bounded even if a value contains the same part many times.
func (t *Tree) measure(a *actor, v any, most int, limit Limit, shown int) (int, error) {
	m := meter{left: most}
	switch m.value(v, 0); {
	case m.deep:
		return 0, t.exceed(LimitNesting, maxValueNesting, a)
	case m.left < 0:
		return 0, t.exceed(limit, int64(shown), a)
	}
	return most - m.left, nil
}

// A meter measures the approximate length of a value as JSON.
type meter struct {
	left int
	deep bool
}

func (m *meter) value(v any, depth int) {
	if depth > maxValueNesting {
		m.deep, m.left = true, -1
		return
	}
	switch v := v.(type) {
	case string:
		m.left -= len(v) + 2
	case []any:
		m.left -= 2
		for i := 0; i < len(v) && m.left >= 0; i++ {
			m.left--
			m.value(v[i], depth+1)
		}
	case map[string]any:
		m.left -= 2
		for k, e := range v {
			if m.left < 0 {
				return
			}
			m.left -= len(k) + 4
			m.value(e, depth+1)
		}
	default:
		m.left -= 4
	}
}

// sizeOf returns the size of a value, at most the size of the largest snapshot.
func sizeOf(v any) int {
	m := meter{left: 4 * MaxDocument}
	m.value(v, 0)
	return 4*MaxDocument - m.left
}

// grow records a changed size of an actor's context. It stops the call if the context or the
// tree grows beyond its limit. A size that exceeded the limit before the call is allowed to
// stay.
func (a *actor) grow(before, after int) error {
	t := a.tree
	t.held += after - before
	switch most := t.machine.limits.context; {
	case after <= before:
		return nil
	case after > most:
		return t.exceed(LimitContext, int64(most), a)
	case t.held > MaxDocument:
		if t.held = t.root.held(); t.held > max(MaxDocument, t.heldBefore) {
			return t.exceed(LimitSnapshot, MaxDocument, a)
		}
	}
	return nil
}

// held returns the total size of the values that an actor and its children keep.
func (a *actor) held() int {
	s := &a.snap
	if a.computing {
		s = &a.run.now
	}
	n := s.size
	for _, c := range s.children {
		n += c.held()
	}
	return n
}
