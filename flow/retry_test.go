package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// saga is a function with compensation. broken names the calls that fail. keys collects the keys of
// the step charge.
type saga struct {
	f      *fixture
	broken map[string]bool
	keys   []string
}

func (s *saga) call(ctx context.Context, name string) (int, error) {
	s.f.log.add("%s", name)
	if name == "charge" {
		s.keys = append(s.keys, flow.Key(ctx))
	}
	if s.broken[name] {
		return 0, retry.Stop(errors.New(name + " is broken"))
	}
	return 1, nil
}

func (s *saga) define() *flow.Definition[int, int] {
	step := func(run *flow.Run, name, undo string) error {
		_, err := flow.Step(run, name, func(ctx context.Context) (int, error) { return s.call(ctx, name) })
		if err == nil {
			flow.Undo(run, undo, func(ctx context.Context) error { _, err := s.call(ctx, undo); return err })
		}
		return err
	}
	return flow.Define("saga", 1, func(run *flow.Run, _ int) (int, error) {
		if err := step(run, "charge", "refund"); err != nil {
			return 0, err
		}
		if _, err := flow.Await[int](run, "approved"); err != nil {
			return 0, err
		}
		if err := step(run, "reserve", "release"); err != nil {
			return 0, err
		}
		if err := flow.Sleep(run, "calm", time.Hour); err != nil {
			return 0, err
		}
		return 7, step(run, "ship", "return")
	})
}

func (s *saga) retry(id string) {
	s.f.t.Helper()
	enginetest.NoError(s.f.t, s.f.Retry(s.f.t.Context(), id))
	s.f.drain()
}

func eachSaga(t *testing.T, test func(s *saga, id string), broken ...string) {
	each(t, func(f *fixture) {
		s := &saga{f: f, broken: map[string]bool{}}
		for _, name := range broken {
			s.broken[name] = true
		}
		d := s.define()
		f.register(d)
		id := start(f, d, 0)
		f.drain()
		test(s, id)
	})
}

func TestRetryAfterCompensationRunsTheUndoneStepsAgain(t *testing.T) {
	eachSaga(t, func(s *saga, id string) {
		f := s.f
		f.send(id, "approved", 1)
		f.drain()
		f.after(time.Hour)
		f.is(id, fsm.Failed, "ship is broken")
		first := []string{"charge", "reserve", "ship", "release", "refund"}
		f.had(first...)

		s.retry(id) // still broken: it is compensated again
		f.is(id, fsm.Failed, "ship is broken")
		second := append(first, first...)
		f.had(second...)

		s.broken["ship"] = false
		s.retry(id)
		f.is(id, fsm.Done, "7")
		f.had(append(second, "charge", "reserve", "ship")...)
		if s.keys[0] == s.keys[1] || s.keys[1] == s.keys[2] {
			f.t.Errorf("keys of charge are %q: a provider would return the payment that was refunded", s.keys)
		}
	}, "ship")
}

func TestRetryAfterFailedCompensationFinishesTheCompensation(t *testing.T) {
	eachSaga(t, func(s *saga, id string) {
		f := s.f
		f.send(id, "approved", 1)
		f.drain()
		f.after(time.Hour)
		f.is(id, fsm.Failed, "release is broken")
		f.had("charge", "reserve", "ship", "release", "refund")

		s.broken["release"], s.broken["ship"] = false, false
		s.retry(id)
		f.is(id, fsm.Failed, "ship is broken")
		f.had("charge", "reserve", "ship", "release", "refund", "release")

		s.retry(id)
		f.is(id, fsm.Done, "7")
		f.had("charge", "reserve", "ship", "release", "refund", "release", "charge", "reserve", "ship")
	}, "ship", "release")
}

func TestRetryOfACancelledFunctionContinues(t *testing.T) {
	eachSaga(t, func(s *saga, id string) {
		f := s.f
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "changed my mind"))
		f.drain()
		f.is(id, fsm.Cancelled, "changed my mind")
		f.had("charge", "refund")

		s.retry(id)
		f.is(id, fsm.Waiting, "")
		f.had("charge", "refund", "charge")
		f.send(id, "approved", 1)
		f.drain()
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "again"))
		f.drain()
		f.is(id, fsm.Cancelled, "again")

		s.retry(id)
		f.after(time.Hour)
		f.is(id, fsm.Done, "7")
		f.had("charge", "refund", "charge", "reserve", "release", "refund", "charge", "reserve", "ship")
	})
}

func TestRetryOfAFunctionThatWasCancelledBeforeItsFirstCallRunsIt(t *testing.T) {
	each(t, func(f *fixture) {
		d := flow.Define("later", 1, func(run *flow.Run, _ int) (int, error) {
			_, err := f.step(run, "first")
			return 3, err
		})
		f.register(d)
		started, err := flow.Start(f.t.Context(), f.eng, d, 0, &fsm.StartOptions{Delay: time.Hour})
		enginetest.NoError(f.t, err)
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), started.ID, "no"))
		f.drain()
		f.is(started.ID, fsm.Cancelled, "no")
		enginetest.NoError(f.t, f.Retry(f.t.Context(), started.ID))
		f.after(time.Hour)
		f.is(started.ID, fsm.Done, "3")
		f.had("first")
	})
}

func TestRandomNumberWithoutARangeFailsTheFunction(t *testing.T) {
	each(t, func(f *fixture) {
		d := flow.Define("dice", 1, func(run *flow.Run, n int64) (int64, error) { return flow.Random(run, n), nil })
		f.register(d)
		id := start(f, d, int64(0))
		f.drain()
		f.is(id, fsm.Failed, "must be positive")
	})
}
