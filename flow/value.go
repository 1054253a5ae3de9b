package flow

import (
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// Now returns the time. It is recorded: later runs of the function get the same time.
func Now(run *Run) time.Time {
	return value(run, "now", func() time.Time { return run.root.session.Clock().Now().UTC().Truncate(time.Microsecond) })
}

// Random returns a random number in [0, n). It is recorded. n must be positive.
func Random(run *Run, n int64) int64 {
	if n <= 0 {
		run.root.mu.Lock()
		run.root.fail(fault.Invalidf("n of Random", "must be positive, got %d", n))
	}
	return value(run, "random", func() int64 { return rand.Int64N(n) })
}

// value returns a recorded value, or records a new one.
func value[T any](run *Run, name string, fn func() T) T {
	key, recorded := run.enter(name, store.JournalValue)
	r := run.root
	if !recorded {
		text, err := encode(fn(), r.session.Limit())
		if err != nil {
			r.fail(err)
		}
		r.value(key, text)
	}
	v, err := decode[T]("value of "+key, edge.Value(r.rows[key].Result))
	if err != nil {
		r.diverged("%v", err)
	}
	r.mu.Unlock()
	return v
}

// value records a value. The lock is held.
func (r *root) value(key, text string) {
	now := r.session.Clock().Now()
	r.record(store.JournalRow{Key: key, Kind: store.JournalValue, Attempt: 1, Result: &text, Began: now, Ended: now})
}

// Version reports whether the function runs new code at this place. It is true, and recorded, for
// instances that reach the place for the first time. It is false for instances that have passed it
// with code that did not have the call.
//
//	if flow.Version(run, "fraud check") {
//		…
//	}
func Version(run *Run, name string) bool {
	r := run.root
	r.mu.Lock()
	if r.ended {
		r.unwind()
	}
	left := r.order[run.path][run.cursor:]
	key := run.key("version " + name)
	_, recorded := r.rows[key]
	passed := len(left) > 0 && left[0] != key && !(r.tolerant && recorded)
	run.counts["version "+name]--
	r.mu.Unlock()
	if passed {
		return false
	}
	return value(run, "version "+name, func() bool { return true })
}

// Again returns the error with which a function starts again: the same instance, with another
// input and an empty journal. Use it for long loops, because a function runs again from its start
// after every wait. Signals, the unique key, the parent and the deadline stay. Compensation that
// was registered is dropped.
//
//	return flow.Again(run, next)
func Again[In any](run *Run, in In) error {
	text, err := encode(in, run.root.session.Limit())
	if err != nil {
		return err
	}
	return &againError{input: text}
}
