package fsm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// session is the run of a function for a claimed instance. It implements journal.Session.
//
// It is the fence of the claim. The token belongs to a batch of claims, so it stays valid after
// this claim has ended. After over, nothing is committed for the run, and a commit that is in
// progress then is awaited before the claim is released.
type session struct {
	execution *execution
	function  *function
	claim     context.Context // context of the claim
	ctx       context.Context // context of the call
	then      func(*decision, error)

	mu     sync.Mutex
	end    *journal.End
	closed bool
	flying int    // commits in progress
	final  func() // called after the last of them, if the session is closed
	// ended finishes the claim after a commit that failed. Nil: the claim is held.
	ended func()
}

func (s *session) Instance() *store.Instance { return s.execution.instance }
func (s *session) Rows() []store.JournalRow  { return s.execution.journal }
func (s *session) Inbox() []store.Signal     { return s.execution.inbox }
func (s *session) Context() context.Context  { return s.ctx }
func (s *session) Clock() clock.Clock        { return s.execution.machines.rt.Clock }
func (s *session) Random() float64           { return s.execution.machines.options.Random() }
func (s *session) NewID() string             { return s.execution.machines.rt.NewID() }
func (s *session) Limit() int                { return s.execution.machines.options.MaxState }
func (s *session) Trace() *string            { return s.execution.trace }

// Policy implements journal.Session.
func (s *session) Policy() retry.Policy {
	e := s.execution
	return e.machines.policyOf(s.claim, e.instance, s.function.policies())
}

// enter admits a commit.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ended != nil {
		return false
	}
	s.flying++
	return true
}

// leave ends a commit. ended finishes the claim if the commit failed.
func (s *session) leave(ended func()) {
	s.mu.Lock()
	s.flying--
	if s.ended == nil {
		s.ended = ended
	}
	var final func()
	if s.flying == 0 {
		final, s.final = s.final, nil
	}
	s.mu.Unlock()
	if final != nil {
		final()
	}
}

// Commit implements journal.Session.
func (s *session) Commit(p journal.Progress) error {
	if !s.enter() {
		return journal.ErrEnded
	}
	e := s.execution
	done := make(chan error, 1)
	d := work.Decided{Item: e.Item, Outcome: &claimOutcome{execution: e, record: &p}, Inline: true, Keyed: true}
	e.machines.runner.CommitOutcome(d, func(err error) { done <- err })
	if err := <-done; err != nil {
		s.leave(func() { e.end(err) })
		return journal.ErrEnded
	}
	s.recorded(p)
	s.leave(nil)
	return nil
}

// recorded applies committed progress to the local copy of the instance.
func (s *session) recorded(p journal.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execution.instance.Fanout = s.execution.fanout(p)
	if len(p.Rows) > 0 {
		s.execution.instance.Crashes = 0
	}
}

// Transact implements journal.Session.
func (s *session) Transact(p journal.Progress, fn func(tx *perdure.Tx) (store.JournalRow, error)) error {
	if !s.enter() {
		return journal.ErrEnded
	}
	e, m := s.execution, s.execution.machines
	out := &claimOutcome{execution: e, record: &journal.Progress{}}
	d := work.Decided{Item: e.Item, Outcome: out, Inline: true, Keyed: true, With: []func(*perdure.Tx) error{func(tx *perdure.Tx) error {
		row, err := fn(tx)
		if err == nil {
			*out.record = p
			out.record.Rows = append(append([]store.JournalRow{}, p.Rows...), row)
		}
		return err
	}}}
	err := m.runner.CommitWith(s.claim, &d)
	var failure *core.AdditionError
	switch {
	case err == nil:
		s.recorded(*out.record)
		s.leave(nil)
		return nil
	case d.Taken:
		s.leave(func() { m.release(e, p) })
	case errors.Is(err, core.ErrLost):
		s.leave(func() { m.runner.Lose(e.Item, err, e.end) })
	case work.Repeatable(err) || !errors.As(err, &failure) && !sqldb.Refused(err):
		s.leave(func() { m.runner.Lose(e.Item, fmt.Errorf("commit step: %w", err), e.end) })
	default:
		s.leave(nil)
		return &journal.StepError{Err: err}
	}
	return journal.ErrEnded
}

// End implements journal.Session.
func (s *session) End(end journal.End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil && !s.closed {
		s.end = &end
	}
}

// Abandon implements journal.Session.
func (s *session) Abandon(end journal.End) {
	s.End(end)
	s.over(nil)
}

// failure returns the error of the run, for its span.
func (s *session) failure(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end.Err
	}
	return err
}

// over closes the fence and then finishes the run, once.
func (s *session) over(err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	final := func() { s.finish(err) }
	if s.flying > 0 {
		s.final, final = final, nil
	}
	s.mu.Unlock()
	if final != nil {
		final()
	}
}

// finish commits the decision of the run, or finishes the claim in another way.
func (s *session) finish(err error) {
	e, end := s.execution, s.end
	switch {
	case s.ended != nil:
		s.ended()
	case end == nil && stopped(s.claim):
		s.then(nil, context.Cause(s.claim))
	case end == nil:
		s.function.recoverFrom(s.claim, e, err, s.then)
	case end.Kind == journal.Unwound:
		e.kept = end.Progress
		s.unwound(end)
	case end.Kind == journal.Panicked:
		s.function.recoverFrom(s.claim, e, end.Err, func(d *decision, err error) {
			if d != nil {
				d.progress = end.Progress
			}
			s.then(d, err)
		})
	default:
		e.kept = end.Progress
		s.then(s.decisionOf(end), nil)
	}
}

// unwound finishes a run without a decision. If the process is stopping, the steps that have
// returned are recorded.
func (s *session) unwound(end *journal.End) {
	if errors.Is(context.Cause(s.claim), core.ErrStopping) && !end.Progress.Empty() {
		now := *end
		now.Kind, now.Wait = journal.Parked, new(time.Duration(0))
		s.then(s.decisionOf(&now), nil)
		return
	}
	err := context.Cause(s.claim)
	if err == nil {
		err = journal.ErrEnded
	}
	s.then(nil, err)
}

// release releases a claim that was revoked. If the instance is handed over to its cancel step,
// what the function has done is recorded.
func (m *Machines) release(e *execution, p journal.Progress) {
	if p.Empty() {
		m.runner.Release(e.Item, e.end)
		return
	}
	m.runner.ReleaseWith(e.Item, &claimOutcome{execution: e, record: &p}, e.end)
}

// keep returns the statements that record what functions did before they were handed over.
func (m *Machines) keep(group []*work.Decided) []sqldb.Stmt {
	w := newWriting(m, &work.Wakeups{})
	for _, d := range group {
		if s, ok := d.Outcome.(*claimOutcome); ok && s.record != nil {
			w.progress(s.execution, *s.record)
		}
	}
	return w.statements()
}
