package torture

import (
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
)

// Outcome is the outcome of a unit as its writer knows it.
type Outcome int

const (
	// Failed means that the unit returned an error, so nothing of it may exist.
	Failed Outcome = iota
	// Acknowledged means that the unit returned without an error, so all of it must exist.
	Acknowledged
	// Unknown means that the response to COMMIT was lost, so all of it or nothing exists.
	Unknown
)

// outcomeOf returns the outcome for an error of Update.
func outcomeOf(err error) Outcome {
	var uncertain *fault.Uncertain
	switch {
	case err == nil:
		return Acknowledged
	case errors.As(err, &uncertain):
		return Unknown
	}
	return Failed
}

// Record is one unit in a History.
type Record struct {
	// Unit is the unit's id. It is empty if the unit failed before it had one.
	Unit string
	// Style is the way in which the unit was written, for messages.
	Style string
	// Mutations is the number of mutations and events that the unit recorded in its last run.
	Mutations int
	// Began and Ended are read from one monotonic clock, before and after the call. The commit
	// is between them.
	Began, Ended time.Duration
	Outcome      Outcome
	Err          error
}

// History holds the outcomes of all units of a run. It is safe for concurrent use.
type History struct {
	start time.Time

	mu      sync.Mutex
	records []Record
}

// NewHistory returns an empty history whose clock starts now.
func NewHistory() *History { return &History{start: clock.System.Now()} }

// Do runs a unit and records it. The unit sets its id, its style and its number of
// mutations.
func (h *History) Do(unit func(*Record) error) Record {
	r := Record{Began: h.now()}
	r.Err = unit(&r)
	r.Ended = h.now()
	r.Outcome = outcomeOf(r.Err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, r)
	return r
}

// Records returns a copy of all records, in the order of their ends.
func (h *History) Records() []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Record(nil), h.records...)
}

// Count returns the number of units with an outcome.
func (h *History) Count(o Outcome) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, r := range h.records {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

func (h *History) now() time.Duration { return clock.System.Now().Sub(h.start) }
