package flow

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/store"
)

// wait is why a branch waits: for signals, for a time, or both.
type wait struct {
	names []string
	until time.Time // zero: no time limit
	// err is the failure of the step that is retried.
	err      error
	failures int
}

// park makes a branch wait and ends its goroutine. If all branches wait, the run ends. The lock is
// held.
func (r *root) park(w wait) {
	if r.ended {
		r.unwind()
	}
	r.waits = append(r.waits, w)
	r.idle()
	r.unwind()
}

// idle counts a branch that waits. The lock is held.
func (r *root) idle() {
	if r.active--; r.active > 0 || r.ended {
		return
	}
	end := journal.End{Kind: journal.Parked}
	var first time.Time
	for _, w := range r.waits {
		for _, name := range w.names {
			if !slices.Contains(end.Names, name) {
				end.Names = append(end.Names, name)
			}
		}
		if !w.until.IsZero() && (first.IsZero() || w.until.Before(first)) {
			first = w.until
		}
		if w.err != nil && w.failures > end.Failures {
			end.Kind, end.Err, end.Failures = journal.Retried, w.err, w.failures
		}
	}
	if !first.IsZero() {
		end.Wait = new(max(first.Sub(r.session.Clock().Now()), 0))
	}
	r.decide(end)
}

// Sleep waits for a time. A sleeping function is a row: it uses no memory in any process. The time
// is counted from the first run of the call. Sleep returns ErrCancelled if the instance is
// cancelled.
func Sleep(run *Run, name string, d time.Duration) error {
	key, recorded := run.enter(name, store.JournalWait)
	r := run.root
	if !recorded {
		if r.cancelled {
			r.mu.Unlock()
			return ErrCancelled
		}
		if err := edge.Delay("time of Sleep", d); err != nil {
			r.fail(err)
		}
		r.open(key, []time.Time{r.now().Add(d)})
	}
	until := r.untils(key)[0]
	switch {
	case recorded && !run.last(): // later calls are recorded: it was over then
	case r.cancelled:
		r.mu.Unlock()
		return ErrCancelled
	case until.After(r.now()):
		r.park(wait{until: until})
	}
	r.mu.Unlock()
	return nil
}

// open records an open wait with its times. The lock is held.
func (r *root) open(key string, untils []time.Time) {
	for i := range untils {
		untils[i] = untils[i].UTC().Truncate(time.Microsecond)
	}
	text, _ := json.Marshal(untils) // times only
	r.record(store.JournalRow{Key: key, Kind: store.JournalWait, Attempt: 1, Result: new(string(text)), Began: r.session.Clock().Now(), Ended: r.session.Clock().Now()})
}

// untils returns the times of an open wait. The lock is held.
func (r *root) untils(key string) []time.Time {
	row, ok := r.rows[key]
	if !ok {
		return nil
	}
	times, err := decode[[]time.Time]("times of "+key, edge.Value(row.Result))
	if err != nil {
		r.diverged("%v", err)
	}
	return times
}

// Case is something that Select waits for.
type Case struct {
	signal string
	take   func(payload json.RawMessage) error
	after  *time.Duration
}

// Signal waits for a signal and decodes its payload into to. A nil to ignores the payload.
func Signal[T any](name string, to *T) Case {
	return Case{signal: name, take: func(payload json.RawMessage) error {
		if to == nil {
			return nil
		}
		value, err := decode[T]("signal "+name, string(payload))
		*to = value
		return err
	}}
}

// After waits for a time, counted from the first run of the Select.
func After(d time.Duration) Case { return Case{after: &d} }

// woken is the recorded end of a wait.
type woken struct {
	Case  int             `json:"case"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Select waits for the first of several cases and returns its index. A signal that is in the inbox
// precedes a time that has passed. The signal is consumed. Select returns ErrCancelled if the
// instance is cancelled.
func Select(run *Run, name string, cases ...Case) (int, error) {
	key, _ := run.enter(name, store.JournalWait, store.JournalWoken)
	r := run.root
	if row, ok := r.rows[key+"="]; ok {
		return r.resolved(key, row, cases)
	}
	if r.cancelled {
		r.mu.Unlock()
		return 0, ErrCancelled
	}
	r.check(key, cases)
	if row, ok := r.take(key, cases); ok {
		return r.resolved(key, row, cases)
	}
	w := wait{}
	untils := r.untils(key)
	for _, c := range cases {
		if c.after == nil {
			w.names = append(w.names, c.signal)
		}
	}
	for _, until := range untils {
		if w.until.IsZero() || until.Before(w.until) {
			w.until = until
		}
	}
	r.park(w)
	return 0, nil
}

// check checks the cases, and records the times of a new wait. The lock is held.
func (r *root) check(key string, cases []Case) {
	if len(cases) == 0 {
		r.fail(fault.Invalidf("call "+key, "must have at least one case"))
	}
	var untils []time.Time
	for _, c := range cases {
		switch {
		case c.after != nil:
			if err := edge.Delay("time of "+key, *c.after); err != nil {
				r.fail(err)
			}
			untils = append(untils, r.now().Add(*c.after))
		default:
			if err := edge.Name("signal", c.signal); err != nil {
				r.fail(err)
			}
		}
	}
	if _, known := r.rows[key]; !known && len(untils) > 0 {
		r.open(key, untils)
	}
	if known := r.untils(key); len(known) != len(untils) {
		r.diverged("call %s has %d times where %d are recorded", key, len(untils), len(known))
	}
}

// take ends a wait if a case is met. The lock is held.
func (r *root) take(key string, cases []Case) (store.JournalRow, bool) {
	for n, g := range r.inbox {
		for i, c := range cases {
			if c.after == nil && c.signal == g.Name {
				r.inbox = slices.Delete(slices.Clone(r.inbox), n, n+1)
				r.pending.Consumed = append(r.pending.Consumed, g.Seq)
				return r.wake(key, woken{Case: i, Value: json.RawMessage(g.Payload)}, g.Created), true
			}
		}
	}
	best, first := -1, time.Time{}
	untils, next := r.untils(key), 0
	for i, c := range cases {
		if c.after == nil {
			continue
		}
		if until := untils[next]; !until.After(r.now()) && (best < 0 || until.Before(first)) {
			best, first = i, until
		}
		next++
	}
	if best < 0 {
		return store.JournalRow{}, false
	}
	return r.wake(key, woken{Case: best}, first), true
}

// wake records the end of a wait. The lock is held.
func (r *root) wake(key string, w woken, at time.Time) store.JournalRow {
	text, _ := json.Marshal(w) // a number, and JSON that was stored
	row := store.JournalRow{Key: key + "=", Kind: store.JournalWoken, Attempt: 1, Result: new(string(text)), Began: at, Ended: r.session.Clock().Now()}
	r.record(row)
	return row
}

// resolved applies the recorded end of a wait. The lock is held.
func (r *root) resolved(key string, row store.JournalRow, cases []Case) (int, error) {
	w, err := decode[woken]("end of "+key, edge.Value(row.Result))
	if err != nil || w.Case >= len(cases) {
		r.diverged("call %s ended with case %d of %d: %v", key, w.Case, len(cases), err)
	}
	if c := cases[w.Case]; c.take != nil {
		if err := c.take(w.Value); err != nil {
			r.diverged("call %s: %v", key, err)
		}
	}
	r.mu.Unlock()
	return w.Case, nil
}

// Await waits for a signal and returns its payload. Signals with the same name are received in the
// order of arrival.
func Await[T any](run *Run, signal string) (T, error) {
	var value T
	_, err := Select(run, signal, Signal(signal, &value))
	return value, err
}
