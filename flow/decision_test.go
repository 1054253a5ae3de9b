package flow

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// steered is a session that lets a test decide what happens during a commit. The moments that these
// tests need are too short to meet with a database.
type steered struct {
	journal.Session
	ctx      context.Context
	transact func(p journal.Progress) error
	commits  []journal.Progress
	ends     []journal.End
}

func (s *steered) Instance() *store.Instance     { return &store.Instance{} }
func (s *steered) Rows() []store.JournalRow      { return nil }
func (s *steered) Inbox() []store.Signal         { return nil }
func (s *steered) Context() context.Context      { return s.ctx }
func (s *steered) Clock() clock.Clock            { return clock.System }
func (s *steered) Random() float64               { return 0 }
func (s *steered) Policy() retry.Policy          { return retry.Fixed(3, time.Minute) }
func (s *steered) End(e journal.End)             { s.ends = append(s.ends, e) }
func (s *steered) Abandon(e journal.End)         { s.ends = append(s.ends, e) }
func (s *steered) Commit(journal.Progress) error { return errors.New("a step was committed") }
func (s *steered) Transact(p journal.Progress, _ func(*perdure.Tx) (store.JournalRow, error)) error {
	s.commits = append(s.commits, p)
	return s.transact(p)
}

// ended runs fn, which may end its goroutine.
func ended(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	<-done
}

func keys(p journal.Progress) (all []string) {
	for _, row := range p.Rows {
		all = append(all, row.Key)
	}
	return all
}

func TestNothingIsCommittedAfterTheDecision(t *testing.T) {
	t.Parallel()
	s := &steered{ctx: t.Context(), transact: func(journal.Progress) error { return nil }}
	r := newRoot(s, false)
	r.mu.Lock()
	r.record(store.JournalRow{Key: "step#1"})
	r.decide(journal.End{Kind: journal.Unwound})
	r.mu.Unlock()
	a := &attempt{root: r, run: &Run{root: r}, key: "tx#1"}
	ended(func() { _ = a.commit(nil) })
	ended(r.flush)
	if len(s.commits) > 0 {
		t.Errorf("commits after the decision: %v", s.commits)
	}
	r.hand(s.End)
	if len(s.ends) != 1 || !slices.Equal(keys(s.ends[0].Progress), []string{"step#1"}) {
		t.Errorf("the decision is %+v, want the row of the step in it", s.ends)
	}
}

func TestDecisionHasTheRowsOfACommitThatFailedMeanwhile(t *testing.T) {
	t.Parallel()
	s := &steered{ctx: t.Context()}
	r := newRoot(s, false)
	s.transact = func(journal.Progress) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.record(store.JournalRow{Key: "second#1"})
		r.decide(journal.End{Kind: journal.Failed}) // another branch
		return &journal.StepError{Err: errors.New("refused")}
	}
	r.mu.Lock()
	r.record(store.JournalRow{Key: "first#1"})
	r.mu.Unlock()
	a := &attempt{root: r, run: &Run{root: r}, key: "tx#1"}
	ended(func() { _ = a.commit(nil) })
	r.close()
	if len(s.ends) != 1 || !slices.Equal(keys(s.ends[0].Progress), []string{"first#1", "second#1"}) {
		t.Errorf("the decision is %+v, want both rows in it", s.ends)
	}
}

func TestStepThatHangsIsAbandonedAfterItsClaimWasLostOrAnotherBranchEndedTheRun(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(r *root, lose func()){
		"lost":  func(_ *root, lose func()) { lose() },
		"ended": func(r *root, _ func()) { r.panicked(errors.New("another branch")) },
	} {
		ctx, lose := context.WithCancel(t.Context())
		defer lose()
		s := &steered{ctx: ctx}
		r := newRoot(s, false)
		before(r, lose)
		ended((&attempt{root: r, run: &Run{root: r}, key: "step#1", number: 1}).abandon)
		if len(s.ends) != 1 {
			t.Errorf("%s: the session has %d decisions, want 1", name, len(s.ends))
		}
	}
}
