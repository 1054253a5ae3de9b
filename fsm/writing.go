package fsm

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// writing collects the outcomes of a group into the sets that are written.
type writing struct {
	machines    *Machines
	wakeups     *work.Wakeups
	steps       []store.Step
	ready       []string
	unrouted    []store.Unrouted
	consumed    []int64
	received    []int64
	reparked    []string
	parks       []store.Park
	barriers    []store.Barrier
	rejoined    []store.Barrier // barriers of instances that were retried
	children    []store.NewInstance
	rest        []store.TreeEnd // children to be cancelled or reopened
	ends        ending
	transitions []store.Transition
	failures    []store.FailedStep

	// These sets are of functions.
	journal  []store.JournalRow
	failed   []store.JournalRow
	started  []store.NewInstance
	forgiven []string
	emptied  []string // instances whose journal is removed
}

func newWriting(m *Machines, wakeups *work.Wakeups) *writing {
	return &writing{machines: m, wakeups: wakeups, ends: ending{rt: m.rt, wakeups: wakeups}}
}

// add adds one outcome to the sets.
func (w *writing) add(s *claimOutcome, inline bool) {
	e, d := s.execution, s.decision
	id := e.instance.ID
	switch {
	case s.unroute:
		w.unrouted = append(w.unrouted, store.Unrouted{ID: id, Known: s.known})
		return
	case s.repark:
		w.repark(e)
		return
	case s.late != nil:
		w.rerun(e, s.late)
		return
	case s.record != nil:
		w.progress(e, *s.record)
		return
	}
	w.progress(e, d.progress)
	if d.outcome.cancelRest && d.outcome.kind != kindSpawn {
		w.rest = append(w.rest, store.TreeEnd{
			Parent: id, First: e.instance.Fanout, Last: e.instance.Fanout, Kind: store.TreeCancelled, Root: id, Reason: "the other children are not needed",
		})
		w.wakeups.Woken(e.Queue)
	}
	w.transition(e, d)
	w.failure(e, d)
	switch d.outcome.kind {
	case kindDone:
		result := string(d.result)
		w.ends.add(*e.instance, Done, d.state, &result, nil)
		w.consumed = append(w.consumed, e.presented()...)
	case kindStop:
		w.ends.add(*e.instance, Stopped, d.state, nil, &d.err)
		w.received = append(w.received, e.unmarked()...)
	case kindFail:
		w.ends.add(*e.instance, Failed, d.state, nil, &d.err)
		w.received = append(w.received, e.unmarked()...)
	case kindNext:
		w.step(e, d, 0)
		w.consumed = append(w.consumed, e.presented()...)
		if !inline {
			w.ready = append(w.ready, id)
			w.wakeups.Woken(e.Queue)
		}
	case kindReplay:
		step := w.step(e, d, e.instance.Attempt+1)
		step.Failures = e.instance.Failures
		if d.err != "" {
			step.Failures++
		}
		w.received = append(w.received, e.unmarked()...)
		w.ready = append(w.ready, id)
		w.later(e, d.outcome.delay)
	case kindAwait:
		w.await(e, d)
	case kindSpawn:
		w.spawn(e, d)
	case kindPark:
		w.park(e, d)
	case kindAgain:
		w.again(e, d)
	case kindCancelled:
		w.ends.add(*e.instance, Cancelled, nil, nil, &d.err)
	}
}

// step writes the new state. A replay keeps the signals for the next attempt.
func (w *writing) step(e *execution, d *decision, attempt int) *store.Step {
	i := e.instance
	step := store.Step{ID: i.ID, Step: i.Step, State: string(d.state), Attempt: attempt, Fanout: i.Fanout, Delay: d.outcome.delay}
	if d.err != "" {
		step.Error = &d.err
	}
	if d.outcome.kind == kindReplay {
		if i.Awaits != nil {
			step.Awaits = jsonText(i.Awaits)
		}
		step.Keeps = i.Keeps
		if i.Seen != nil {
			step.Seen = jsonText(i.Seen)
		}
		if i.Dropped != nil {
			dropped := string(i.Dropped)
			step.Dropped = &dropped
		}
		step.TimedOut, step.Rerun = i.TimedOut, i.Rerun
	} else {
		step.Step = d.outcome.step
	}
	w.steps = append(w.steps, step)
	return &w.steps[len(w.steps)-1]
}

func (w *writing) await(e *execution, d *decision) {
	step := w.step(e, d, 0)
	step.Awaits = jsonText(d.outcome.names)
	step.Awaited = e.awaited(d.outcome.names)
	park := store.Park{ID: e.instance.ID, Names: *step.Awaits, Timeout: d.outcome.timeout}
	if d.outcome.keep {
		step.Keeps, step.Seen = true, jsonText(append([]int64{}, e.presented()...))
		park.Seen = step.Seen
		w.received = append(w.received, e.unmarked()...)
	} else {
		w.consumed = append(w.consumed, e.presented()...)
	}
	w.parks = append(w.parks, park)
	if d.outcome.timeout != nil {
		w.later(e, *d.outcome.timeout)
	}
}

// later wakes the dispatchers when the delay has passed.
func (w *writing) later(e *execution, delay time.Duration) {
	w.wakeups.At(e.Queue, w.machines.rt.Clock.Now().Add(delay))
}

func (w *writing) spawn(e *execution, d *decision) {
	step := w.step(e, d, 0)
	step.Fanout = e.instance.Fanout + 1
	w.consumed = append(w.consumed, e.presented()...)
	until := 0
	if d.outcome.need > 0 {
		until = len(d.children) - d.outcome.need
	}
	w.barriers = append(w.barriers, store.Barrier{
		Parent: e.instance.ID, Fanout: step.Fanout, Pending: len(d.children), Until: until, Timeout: d.outcome.timeout, CancelRest: d.outcome.cancelRest,
	})
	w.children = append(w.children, d.children...)
	for _, child := range d.children {
		w.wakeups.Woken(child.Queue)
	}
	if d.outcome.timeout != nil {
		w.later(e, *d.outcome.timeout)
	}
}

// statements returns the statements in lock order: instances, then the rows that depend
// on them.
func (w *writing) statements() []sqldb.Stmt {
	st, now := w.machines.rt.Store, w.machines.rt.Now()
	var stmts []sqldb.Stmt
	if len(w.consumed) > 0 {
		stmts = append(stmts, st.ConsumeSignals(w.consumed))
	}
	if len(w.received) > 0 {
		stmts = append(stmts, st.ReceiveSignals(w.received))
	}
	if len(w.reparked) > 0 {
		stmts = append(stmts, st.ClearWaits(w.reparked))
	}
	if len(w.steps) > 0 {
		stmts = append(stmts, st.StepInstances(w.steps, now))
	}
	stmts = append(stmts, w.journals(now)...)
	if len(w.ready) > 0 {
		stmts = append(stmts, st.Instances().Ready(w.ready))
	}
	if len(w.unrouted) > 0 {
		if st.Spreads() {
			stmts = append(stmts, st.Instances().Unshare(store.UnroutedIDs(w.unrouted)))
		}
		stmts = append(stmts, st.UnrouteInstances(w.unrouted))
	}
	if len(w.parks) > 0 {
		stmts = append(stmts, st.ParkInstances(w.parks, now, w.wakeups.Woken)...)
	}
	if len(w.barriers) > 0 {
		stmts = append(stmts, w.fanOut(now)...)
	}
	if len(w.rejoined) > 0 {
		stmts = append(stmts, st.RaiseBarriers(w.rejoined, now))
	}
	if len(w.rest) > 0 {
		stmts = append(stmts, st.InsertTreeEnds(w.rest, 0, now))
	}
	if len(w.transitions) > 0 {
		stmts = append(stmts, st.InsertTransitions(w.machines.runner.ID, w.transitions, now))
	}
	if len(w.failures) > 0 {
		stmts = append(stmts, st.Instances().RecordFailed(w.machines.runner.ID, w.failures, now)...)
	}
	return append(stmts, w.ends.statements(now)...)
}

// fanOut starts children and creates the barriers of their parents. A parent does not
// wait for a child whose unique key is occupied.
func (w *writing) fanOut(now store.Now) []sqldb.Stmt {
	st := w.machines.rt.Store
	stmts := []sqldb.Stmt{st.RaiseBarriers(w.barriers, now)}
	for from := 0; from < len(w.children); from += chunk {
		stmts = append(stmts, st.StartInstances(w.children[from:min(from+chunk, len(w.children))], now)...)
	}
	parents := make([]string, len(w.barriers))
	for i, b := range w.barriers {
		parents[i] = b.Parent
	}
	return append(stmts, st.CountDropped(w.children, parents, now, w.wakeups.Woken)...)
}

// ending collects instances that finish and the rows that depend on them.
type ending struct {
	rt         *host.Runtime
	wakeups    *work.Wakeups
	finishes   []store.Finish
	uniques    []store.Occupied
	deadlines  []store.Deadline
	partitions []string
	arrivals   map[arrival]int
}

type arrival struct {
	parent string
	fanout int
}

// add records the end of an instance. state is the state after its last step, if the step
// changed it.
func (w *ending) add(i store.Instance, status Status, state json.RawMessage, result, message *string) {
	finish := store.Finish{ID: i.ID, Status: string(status), Result: result, Error: message}
	if state != nil {
		text := string(state)
		finish.State = &text
	}
	w.finishes = append(w.finishes, finish)
	if i.UniqueKey != nil && leaves(Scope(i.UniqueScope), status) {
		w.uniques = append(w.uniques, store.Occupied{UniqueKey: store.UniqueKey{Name: *i.UniqueName, Key: *i.UniqueKey}, ID: i.ID})
	}
	if i.Deadline != nil {
		w.deadlines = append(w.deadlines, store.Deadline{At: *i.Deadline, ID: i.ID})
	}
	if i.Partition != nil {
		w.partitions = append(w.partitions, *i.Partition)
	}
	if i.Parent != nil {
		if w.arrivals == nil {
			w.arrivals = map[arrival]int{}
		}
		w.arrivals[arrival{*i.Parent, *i.ParentFanout}]++
	}
}

// endedBy records that the end of a parent caused the end that was added last.
func (w *ending) endedBy(parent string) {
	if parent != "" {
		w.finishes[len(w.finishes)-1].EndedBy = &parent
	}
}

// leaves reports whether an instance that finishes with the status frees its key.
func leaves(scope Scope, status Status) bool {
	switch scope {
	case Always:
		return false
	case LiveOrDone:
		return status != Done
	case LiveOrFailed:
		return status != Stopped && status != Failed && status != Quarantined
	case Live:
	}
	return true
}

// statements returns the statements that finish the instances and let others continue.
func (w *ending) statements(now store.Now) []sqldb.Stmt {
	if len(w.finishes) == 0 {
		return nil
	}
	st := w.rt.Store
	stmts := []sqldb.Stmt{st.FinishInstances(w.finishes, now)}
	if len(w.uniques) > 0 {
		stmts = append(stmts, st.LeaveUniques(w.uniques))
	}
	if len(w.deadlines) > 0 {
		stmts = append(stmts, st.DropDeadlines(w.deadlines))
	}
	if len(w.partitions) > 0 {
		stmts = append(stmts, st.PromotePartitions(w.partitions, now, w.wakeups.Woken)...)
	}
	if len(w.arrivals) > 0 {
		var arrivals []store.Arrival
		for a, n := range w.arrivals {
			arrivals = append(arrivals, store.Arrival{Parent: a.parent, Fanout: a.fanout, N: n})
		}
		stmts = append(stmts, st.CountArrivals(arrivals, now, w.wakeups.Woken)...)
	}
	return stmts
}
