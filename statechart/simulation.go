package statechart

import (
	"errors"
	"slices"
)

// A Simulation runs a tree on a virtual clock and keeps its timers in memory,
// for tests and for trying out a machine.
type Simulation struct {
	// Tree is the tree. It may be replaced by one that was restored from its
	// snapshot.
	Tree *Tree
	// Now is the virtual time in milliseconds.
	Now int64

	run    func(TaskOp) *Outcome
	timers []Timer
	ready  []finished
}

// An Outcome is how a task ended.
type Outcome struct {
	// Output is what it returned, or the error if it failed.
	Output any
	Failed bool
}

type finished struct {
	op      TaskOp
	outcome *Outcome
}

// maxSimulated is how many timers Advance fires at most, so that timers that
// schedule each other without delay end.
const maxSimulated = 100_000

// ErrLivelock says that virtual time did not get on.
var ErrLivelock = errors.New("timers schedule each other without end")

// Simulate starts a machine at time 0. run is asked how each task ends, and
// returns nil for those that end later, by Finish; it may be nil.
func Simulate(m *Machine, input any, run func(TaskOp) *Outcome) (*Simulation, *Step, error) {
	s := &Simulation{run: run}
	tree, step, err := m.Start(0, input)
	if err != nil {
		return nil, nil, err
	}
	s.Tree = tree
	s.take(step)
	return s, step, s.settle(step)
}

// Send sends an event.
func (s *Simulation) Send(e Event) (*Step, error) {
	step, err := s.Tree.Send(s.Now, e)
	return s.after(step, err)
}

// Finish ends the running task at a path. Where there is none, nothing happens.
func (s *Simulation) Finish(path string, o Outcome) (*Step, error) {
	for _, op := range s.Tree.Pending() {
		if op.Path == path {
			step, err := s.finish(op, &o)
			return s.after(step, err)
		}
	}
	return &Step{Dropped: true}, nil
}

// Advance lets time pass. Timers fire at their own times, also those that
// others schedule meanwhile.
func (s *Simulation) Advance(ms int64) (*Step, error) {
	end, all := s.Now+ms, &Step{}
	for range maxSimulated {
		i := s.next()
		if i < 0 || s.timers[i].Due > end {
			s.Now = end
			return all, nil
		}
		if s.timers[i].Due > s.Now {
			s.Now = s.timers[i].Due
		}
		if err := s.fire(i, all); err != nil {
			return all, err
		}
		if j := s.next(); j < 0 || s.timers[j].Due > s.Now {
			if err := s.settle(all); err != nil {
				return all, err
			}
		}
	}
	return all, ErrLivelock
}

// Timers returns the pending timers in the order in which they will fire.
func (s *Simulation) Timers() []Timer {
	all := slices.Clone(s.timers)
	slices.SortFunc(all, compareTimers)
	return all
}

func compareTimers(a, b Timer) int {
	if a.Due != b.Due {
		return int(a.Due - b.Due)
	}
	return int(a.Sequence - b.Sequence)
}

func (s *Simulation) next() int {
	first := -1
	for i := range s.timers {
		if first < 0 || compareTimers(s.timers[i], s.timers[first]) < 0 {
			first = i
		}
	}
	return first
}

func (s *Simulation) fire(i int, all *Step) error {
	t := s.timers[i]
	s.timers = slices.Delete(s.timers, i, i+1)
	step, err := s.Tree.Fire(s.Now, t)
	if err != nil {
		return err
	}
	s.take(step)
	all.add(step)
	return nil
}

func (s *Simulation) after(step *Step, err error) (*Step, error) {
	if err != nil {
		return nil, err
	}
	s.take(step)
	return step, s.settle(step)
}

// settle ends the tasks whose outcome is known, in the order of their starts.
func (s *Simulation) settle(all *Step) error {
	for len(s.ready) > 0 {
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

func (s *Simulation) finish(op TaskOp, o *Outcome) (*Step, error) {
	if o.Failed {
		return s.Tree.Fail(s.Now, op.Path, op.Generation, o.Output)
	}
	return s.Tree.Complete(s.Now, op.Path, op.Generation, o.Output)
}

// take does what a step asks for.
func (s *Simulation) take(step *Step) {
	for _, o := range step.Timers {
		s.timers = slices.DeleteFunc(s.timers, o.removes)
		if o.Kind == Schedule {
			s.timers = append(s.timers, o.Timer)
		}
	}
	for _, op := range step.Tasks {
		if !op.Start || s.run == nil {
			continue
		}
		if o := s.run(op); o != nil {
			s.ready = append(s.ready, finished{op: op, outcome: o})
		}
	}
}

// removes says whether a pending timer is cancelled or replaced.
func (o TimerOp) removes(t Timer) bool {
	if o.Kind == CancelAll {
		return t.Path == o.Timer.Path && t.Generation == o.Timer.Generation
	}
	return (o.Kind != Cancel || o.Timer.ID != "") && t.Key() == o.Timer.Key()
}

// add appends what another step left to do.
func (s *Step) add(o *Step) {
	s.Timers = append(s.Timers, o.Timers...)
	s.Effects = append(s.Effects, o.Effects...)
	s.Tasks = append(s.Tasks, o.Tasks...)
	s.Emitted = append(s.Emitted, o.Emitted...)
	s.Logs = append(s.Logs, o.Logs...)
}
