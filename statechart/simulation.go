package statechart

import (
	"cmp"
	"errors"
	"slices"
)

// A Simulation runs a tree on a virtual clock and keeps its timers in memory. It is for tests
// and for trying out a machine.
type Simulation struct {
	// Tree is the simulated tree. It may be replaced by a tree that was restored from its
	// snapshot.
	Tree *Tree
	// Now is the virtual time in milliseconds.
	Now int64

	run    func(InvokeOp) *Outcome
	timers []Timer
	ready  []finished
}

// An Outcome is the result of an invocation.
type Outcome struct {
	// Output is the returned value, or the error if the invocation failed.
	Output any
	Failed bool
}

type finished struct {
	op      InvokeOp
	outcome *Outcome
}

// maxSimulated is the maximum number of timers and invocations that one call processes. It
// stops timers and invocations that cause each other without delay.
const maxSimulated = 10_000

// ErrLivelock is returned if virtual time does not advance.
var ErrLivelock = errors.New("timers or invocations cause each other without end")

// Simulate starts a machine at time 0. run returns the outcome of each invocation, or nil if
// Finish provides the outcome later. run may be nil.
func Simulate(m *Machine, input any, run func(InvokeOp) *Outcome) (*Simulation, *Step, error) {
	s := &Simulation{run: run}
	tree, step, err := m.Start(0, input)
	if err != nil {
		return nil, nil, err
	}
	s.Tree = tree
	s.take(step)
	return s, step, s.finishInvocations(step)
}

// Send sends an event.
func (s *Simulation) Send(e Event) (*Step, error) {
	step, err := s.Tree.Send(s.Now, e)
	return s.after(step, err)
}

// Finish finishes the running invocation at a path. It does nothing if no invocation is running
// there.
func (s *Simulation) Finish(path string, o Outcome) (*Step, error) {
	for _, op := range s.Tree.Pending() {
		if op.Path == path {
			step, err := s.finish(op, &o)
			return s.after(step, err)
		}
	}
	return &Step{Dropped: true}, nil
}

// Advance advances the virtual time. Timers fire at their due times, including timers that are
// scheduled while it runs.
func (s *Simulation) Advance(ms int64) (*Step, error) {
	end, all := s.Now+ms, &Step{}
	for range maxSimulated {
		first := s.Timers()
		if len(first) == 0 || first[0].Due > end {
			s.Now = end
			return all, nil
		}
		s.Now = max(s.Now, first[0].Due)
		if err := s.flush(all); err != nil {
			return all, err
		}
		if err := s.finishInvocations(all); err != nil {
			return all, err
		}
	}
	return all, ErrLivelock
}

// flush fires the due timers. It starts over when a timer changes the set of timers. As with
// XState's own simulated clock, timers that the last timer schedules wait until invocations
// have finished.
func (s *Simulation) flush(all *Step) error {
	for range maxSimulated {
		again, err := s.pass(all)
		if err != nil || !again {
			return err
		}
	}
	return ErrLivelock
}

func (s *Simulation) pass(all *Step) (again bool, err error) {
	changed := false
	for _, t := range s.Timers() {
		if changed {
			return true, nil
		}
		if t.Due > s.Now {
			continue
		}
		if changed, err = s.fire(t, all); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Timers returns the pending timers in firing order.
func (s *Simulation) Timers() []Timer {
	all := slices.Clone(s.timers)
	slices.SortFunc(all, compareTimers)
	return all
}

func compareTimers(a, b Timer) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Sequence, b.Sequence))
}

// fire delivers a timer and reports whether that changed the set of other timers.
func (s *Simulation) fire(t Timer, all *Step) (changed bool, err error) {
	s.timers = slices.DeleteFunc(s.timers, func(o Timer) bool { return o.Sequence == t.Sequence })
	step, err := s.Tree.Fire(s.Now, t)
	if err != nil {
		return false, err
	}
	all.add(step)
	return s.take(step), nil
}

func (s *Simulation) after(step *Step, err error) (*Step, error) {
	if err != nil {
		return nil, err
	}
	s.take(step)
	return step, s.finishInvocations(step)
}

// finishInvocations finishes the invocations whose outcome is known, in start order.
func (s *Simulation) finishInvocations(all *Step) error {
	for n := 0; len(s.ready) > 0; n++ {
		if n == maxSimulated {
			return ErrLivelock
		}
		f := s.ready[0]
		s.ready = s.ready[1:]
		step, err := s.finish(f.op, f.outcome)
		if err != nil {
			return err
		}
		s.take(step)
		all.add(step)
	}
	return nil
}

func (s *Simulation) finish(op InvokeOp, o *Outcome) (*Step, error) {
	if o.Failed {
		return s.Tree.Fail(s.Now, op.Path, op.Generation, o.Output)
	}
	return s.Tree.Complete(s.Now, op.Path, op.Generation, o.Output)
}

// take applies the operations of a step and reports whether it changed the timers.
func (s *Simulation) take(step *Step) (changed bool) {
	for _, o := range step.Timers {
		before := len(s.timers)
		s.timers = slices.DeleteFunc(s.timers, o.removes)
		changed = changed || len(s.timers) != before || o.Kind == Schedule
		if o.Kind == Schedule {
			s.timers = append(s.timers, o.Timer)
		}
	}
	for _, op := range step.Invocations {
		if !op.Start || s.run == nil {
			continue
		}
		if o := s.run(op); o != nil {
			s.ready = append(s.ready, finished{op: op, outcome: o})
		}
	}
	return changed
}

// removes reports whether the operation cancels or replaces a pending timer.
func (o TimerOp) removes(t Timer) bool {
	if o.Kind == CancelAll {
		return t.Path == o.Timer.Path && t.Generation == o.Timer.Generation
	}
	return (o.Kind != Cancel || o.Timer.ID != "") && t.Key() == o.Timer.Key()
}

// add appends the operations of another step.
func (s *Step) add(o *Step) {
	s.Timers = append(s.Timers, o.Timers...)
	s.Effects = append(s.Effects, o.Effects...)
	s.Invocations = append(s.Invocations, o.Invocations...)
	s.Emitted = append(s.Emitted, o.Emitted...)
	s.Logs = append(s.Logs, o.Logs...)
}
