package fsm

import (
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// endings returns the instances of a group that are about to finish, but must not while
// their inboxes hold awaited signals that no step has received.
func endings(group []*work.Decided) []store.Ending {
	var ends []store.Ending
	for _, decided := range group {
		s, ok := decided.Outcome.(*claimOutcome)
		if !ok || s.decision == nil {
			continue
		}
		i, d := s.execution.instance, s.decision
		if d.outcome.kind != kindDone && d.outcome.kind != kindStop || d.outcome.ignore || i.CancelReason != nil || len(i.Awaited)+len(i.Awaits) == 0 {
			continue
		}
		// A process of an older version may have parked it. Such processes do not store
		// Awaited.
		names := append(slices.Clone(i.Awaited), i.Awaits...)
		given := append([]int64{}, s.execution.presented()...)
		ends = append(ends, store.Ending{ID: i.ID, Names: *jsonText(names), Given: *jsonText(given)})
	}
	return ends
}

// rerun runs the step of an instance that cannot finish yet again. The step receives the
// signals that arrived while it ran. Its previous outcome is discarded.
func (w *writing) rerun(e *execution, late []string) {
	i := e.instance
	if e.history {
		w.transition(e, &decision{outcome: Outcome{kind: kindRerun}})
	}
	again := &decision{outcome: Outcome{kind: kindReplay}, state: json.RawMessage(i.State)}
	step := w.step(e, again, i.Attempt)
	step.Failures, step.Rerun = i.Failures, true
	// The signal arrived after the time limit, but before anything was decided.
	step.TimedOut = i.TimedOut && !slices.ContainsFunc(late, func(name string) bool { return slices.Contains(i.Awaits, name) })
	w.received = append(w.received, e.unmarked()...)
	w.ready = append(w.ready, i.ID)
	w.wakeups.Woken(e.Queue)
}

// awaited returns, as JSON, the names of all signals that the instance has ever awaited,
// including names. It returns nil if no name is new.
func (e *execution) awaited(names []string) *string {
	all := slices.Clone(e.instance.Awaited)
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) == len(e.instance.Awaited) {
		return nil
	}
	return jsonText(all)
}

// repark makes a retried instance wait again as it did when it finished.
func (w *writing) repark(e *execution) {
	i := e.instance
	w.reparked = append(w.reparked, i.ID)
	if i.Wait.For == store.WaitedForSignals {
		w.parks = append(w.parks, waitAgain(i))
	} else {
		w.rejoined = append(w.rejoined, joinAgain(i))
		w.rest = append(w.rest, reopened(i, i.ID))
		w.wakeups.Woken(e.Queue)
	}
	if left := i.Wait.Timeout(); left != nil {
		w.later(e, *left)
	}
}

// waitAgain returns the wait for signals of an instance that was waiting when it
// finished.
func waitAgain(i *store.Instance) store.Park {
	park := store.Park{ID: i.ID, Names: *jsonText(i.Awaits), Timeout: i.Wait.Timeout()}
	if i.Keeps {
		park.Seen = jsonText(append([]int64{}, i.Seen...))
	}
	return park
}
