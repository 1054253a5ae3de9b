package actor

import (
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// writing groups the writes of turns into sets, so that a batch of many actors needs as many
// statements as a batch of one.
type writing struct {
	store *store.Store
	now   store.Now

	left       []store.ActorRef
	parked     []store.ActorRef
	freed      []store.ActorRef
	states     []store.ActorState
	entries    []store.ActorEntry
	keys       []store.ActorKey
	timersAll  []store.ActorPath
	timersGone []store.ActorTimer
	timersHeld []string // locations
	timersPut  []store.ActorTimer
	hooks      []store.NewHook
	stops      []string
}

// newWriting allocates space for the usual writes of n turns.
func newWriting(st *store.Store, now store.Now, n int) *writing {
	return &writing{
		store: st, now: now, states: make([]store.ActorState, 0, n),
		entries: make([]store.ActorEntry, 0, n), timersGone: make([]store.ActorTimer, 0, n),
	}
}

// add sorts the writes of one turn into the sets.
func (w *writing) add(t *turn) {
	ref := t.ref.stored()
	if t.sequence == 0 && t.found {
		w.left = append(w.left, ref) // the actor could not be started
		return
	}
	if !t.moved() && t.timers.empty() {
		return
	}
	w.timers(t)
	if !t.moved() {
		return
	}
	w.states = append(w.states, t.state())
	w.entries = append(w.entries, t.entries...)
	w.keys = append(w.keys, t.keys...)
	w.hooks = append(w.hooks, t.hooks...)
	w.stops = append(w.stops, t.stops...)
	switch {
	case t.reason != nil:
		w.parked = append(w.parked, ref)
	case t.row.Status == string(Quarantined):
		w.freed = append(w.freed, ref)
	}
}

func (w *writing) timers(t *turn) {
	for _, timer := range t.timers.all {
		w.timersAll = append(w.timersAll, store.ActorPath{ActorRef: t.ref.stored(), Path: timer.Path, Generation: timer.Generation})
	}
	for _, timer := range t.timers.gone {
		id := alarmID(timer)
		if location := t.locationOf(id); location != "" {
			w.timersHeld = append(w.timersHeld, location)
			continue
		}
		w.timersGone = append(w.timersGone, store.ActorTimer{ActorRef: t.ref.stored(), AlarmID: id})
	}
	for _, timer := range t.timers.put {
		w.timersPut = append(w.timersPut, t.storedTimer(timer))
	}
}

// state returns the actor's row after the transitions.
func (t *turn) state() store.ActorState {
	s := store.ActorState{
		ActorRef: t.ref.stored(), Status: string(t.status), Machine: t.row.Machine, Sequence: t.sequence,
		States: t.states, Reason: t.reason, At: timeOf(t.now), Location: t.location,
	}
	if t.value != "" {
		s.Value = &t.value
	}
	if t.snapshot != nil {
		s.Snapshot = &store.Snapshot{Sequence: t.sequence, Snapshot: string(t.snapshot), Checksum: t.checksum}
	}
	if len(t.entries) > 0 {
		s.Machine = t.kind.options.Version
	}
	switch {
	case t.reason != nil:
		s.Status = string(Quarantined)
	case t.failure != nil:
		s.Reason = t.failure
	}
	return s
}

// stmts returns the statements in the order in which they must run: removals before insertions,
// and a row before rows that depend on it.
func (w *writing) stmts() []sqldb.Stmt {
	var all []sqldb.Stmt
	all = set(all, w.left, w.store.LeaveActors)
	if len(w.states) > 0 && w.states[0].Location != "" { // all have one, or none
		all = append(all, w.store.StepHeldActors(w.states))
	} else {
		all = set(all, w.states, w.store.StepActors)
	}
	all = set(all, w.entries, w.store.LogActors)
	all = set(all, w.keys, w.store.InsertActorKeys)
	all = set(all, w.timersHeld, w.store.DeleteHeldTimers)
	all = set(all, w.timersAll, w.store.DeleteAllTimers)
	all = set(all, w.timersGone, w.store.DeleteTimers)
	all = set(all, w.timersPut, w.store.PutTimers)
	all = set(all, w.parked, w.store.ParkTimers)
	all = set(all, w.freed, w.store.UnparkTimers)
	for _, h := range w.hooks {
		all = append(all, w.store.InsertHook(h, w.now)...)
	}
	return all
}

// set adds the statement for a set, if the set has elements.
func set[T any](all []sqldb.Stmt, elements []T, stmt func([]T) sqldb.Stmt) []sqldb.Stmt {
	if len(elements) == 0 {
		return all
	}
	return append(all, stmt(elements))
}
