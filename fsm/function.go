package fsm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// function is a durable function as a machine. Its instances are those of a definition with one
// step.
type function struct {
	machine
	function journal.Function
}

// machineOf returns the machine of a definition: of this package, or of package flow.
func machineOf(d Definer) (machine, error) {
	switch d := d.(type) {
	case machine:
		return d, nil
	case journal.Function:
		if inner, ok := d.Machine().(machine); ok {
			return &function{machine: inner, function: d}, nil
		}
	}
	return nil, fault.Invalidf("definition "+d.Name(), "must be made by fsm.Define or flow.Define")
}

// continues registers a function for the instances of earlier versions. The lock must be held.
func (m *Machines) continues(f *function) error {
	for _, version := range f.function.Earlier() {
		key := definition{f.Name(), version}
		if _, exists := m.known[key]; exists {
			return fault.Invalidf("function "+f.Name(), "must not continue version %d, which is registered itself", version)
		}
		m.known[key], m.recorded[key] = f, true
	}
	return nil
}

// has implements machine. The journal decides where a function continues.
func (f *function) has(string) bool { return true }

// keepsHistory implements machine. The journal is the history.
func (f *function) keepsHistory() bool { return false }

// maxRun is the time limit for a run of a function. Its steps have their own limits.
const maxRun = 100 * 365 * 24 * time.Hour

// execute implements machine.
func (f *function) execute(ctx context.Context, e *execution, then func(*decision, error)) {
	if err := e.sealed(); err != nil {
		then(nil, err)
		return
	}
	traced, span := e.traced(ctx)
	s := &session{execution: e, function: f, claim: ctx, then: then}
	e.call(traced, maxRun, func(ctx context.Context) error {
		s.ctx = ctx
		f.function.Run(s)
		return nil
	}, func(err error) {
		span.End(s.failure(err))
		s.over(err)
	})
}

// functions reports whether a function is registered in this process.
func (m *Machines) functions() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.functional
}

// journaled returns the ids of the claimed instances that belong to functions.
func (m *Machines) journaled(executions map[string]*execution) []string {
	if !m.functions() {
		return nil
	}
	var ids []string
	for id, e := range executions {
		if _, ok := m.lookup(e.instance.FSM, e.instance.Version).(*function); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// decisionOf returns the decision at the end of a run.
func (s *session) decisionOf(end *journal.End) *decision {
	d := &decision{progress: end.Progress}
	if end.Err != nil {
		d.err = edge.Message(end.Err.Error())
	}
	switch end.Kind {
	case journal.Done:
		d.outcome, d.result = Outcome{kind: kindDone, ignore: true}, json.RawMessage(end.Result)
	case journal.Stopped:
		d.outcome = Outcome{kind: kindStop, ignore: true}
	case journal.Cancelled:
		d.outcome = Outcome{kind: kindCancelled}
	case journal.Again:
		d.outcome, d.state = Outcome{kind: kindAgain}, json.RawMessage(end.Input)
	case journal.Parked, journal.Retried:
		d.outcome, d.failures = Outcome{kind: kindPark, names: end.Names, timeout: end.Wait}, end.Failures
	case journal.Failed, journal.Panicked, journal.Unwound:
		d.outcome = Outcome{kind: kindFail}
	}
	return d
}

// park makes a function wait: for signals, or until its due time.
func (w *writing) park(e *execution, d *decision) {
	i := e.instance
	step := store.Step{ID: i.ID, Step: journal.Run, State: i.State, Attempt: d.failures, Failures: d.failures, Fanout: e.fanout(d.progress)}
	if d.err != "" {
		step.Error = &d.err
	}
	wait := d.outcome.timeout
	if len(d.outcome.names) > 0 {
		step.Awaits, step.Awaited = jsonText(d.outcome.names), e.awaited(d.outcome.names)
		w.parks = append(w.parks, store.Park{ID: i.ID, Names: *step.Awaits, Timeout: wait})
	} else {
		step.Delay = *wait
		w.ready = append(w.ready, i.ID)
	}
	w.steps = append(w.steps, step)
	if wait != nil {
		w.later(e, *wait)
	}
}

// again starts a function from the beginning with another input. Its journal is removed.
func (w *writing) again(e *execution, d *decision) {
	i := e.instance
	w.emptied = append(w.emptied, i.ID)
	w.steps = append(w.steps, store.Step{ID: i.ID, Step: journal.Run, State: string(d.state), Fanout: e.fanout(d.progress)})
	w.ready = append(w.ready, i.ID)
	w.wakeups.Woken(e.Queue)
}

// fanout returns the number of fan-outs of the instance of a function: 1 if it has children.
func (e *execution) fanout(p journal.Progress) int {
	if len(p.Children) > 0 {
		return 1
	}
	return e.instance.Fanout
}

// progress adds what a function has done to the sets.
func (w *writing) progress(e *execution, p journal.Progress) {
	id := e.instance.ID
	if p.Reset {
		w.emptied = append(w.emptied, id)
	}
	for _, row := range p.Rows {
		row.Instance = id
		if row.Kind == store.JournalFailure {
			w.failed = append(w.failed, row)
		} else {
			w.journal = append(w.journal, row)
		}
	}
	w.consumed = append(w.consumed, p.Consumed...)
	w.started = append(w.started, p.Children...)
	for _, child := range p.Children {
		w.wakeups.Woken(child.Queue)
	}
	if e.instance.Crashes > 0 && len(p.Rows) > 0 {
		w.forgiven = append(w.forgiven, id)
	}
}

// journals returns the statements of functions. They run after the instances are locked.
func (w *writing) journals(now store.Now) (stmts []sqldb.Stmt) {
	st, worker, clock := w.machines.rt.Store, w.machines.runner.ID, w.machines.rt.Clock.Now()
	if len(w.forgiven) > 0 {
		stmts = append(stmts, st.ForgiveCrashes(w.forgiven))
	}
	if len(w.emptied) > 0 {
		stmts = append(stmts, st.DeleteJournal(w.emptied))
	}
	if len(w.journal) > 0 {
		stmts = append(stmts, st.InsertJournal(worker, w.journal, clock, now))
	}
	if len(w.failed) > 0 {
		stmts = append(stmts, st.FailJournal(worker, w.failed, clock, now))
	}
	for from := 0; from < len(w.started); from += chunk {
		stmts = append(stmts, st.StartInstances(w.started[from:min(from+chunk, len(w.started))], now)...)
	}
	return stmts
}
