package fsm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

// The policy of a step replaces that of its definition, and the errors of package
// retry replace what a policy says.
func TestPoliciesAndErrorsDecideAboutTheNextAttempt(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		cause := errors.New("down")
		for name, c := range map[string]struct {
			err   error
			step  retry.Policy
			delay time.Duration // 0: it has failed
		}{
			"definition": {cause, retry.Policy{}, time.Minute},
			"step":       {cause, retry.Fixed(3, time.Hour), time.Hour},
			"step, none": {cause, retry.None(), 0},
			"stop":       {retry.Stop(cause), retry.Policy{}, 0},
			"after":      {retry.After(7*time.Hour, cause), retry.Policy{}, 7 * time.Hour},
		} {
			only := fsm.Step("only", func(context.Context, run) (fsm.Outcome, error) { return fsm.Outcome{}, c.err }, &fsm.StepOptions{Retry: c.step})
			d := fsm.Define("m "+name, 1, &with{Retry: retry.Fixed(3, time.Minute)}, only)
			f.register(d)
			id := start(f, d, 0, nil)
			f.drain()
			i := f.get(id)
			if i.Error != "down" {
				t.Errorf("%s: the error is %q", name, i.Error)
			}
			if want := fsm.Failed; c.delay == 0 && i.Status != want {
				t.Errorf("%s: the instance is %s, want %s", name, i.Status, want)
			}
			if delay := i.Due.Sub(f.clock.Now()); c.delay > 0 && (i.Status != fsm.Retrying || delay != c.delay || i.Failures != 1) {
				t.Errorf("%s: the instance is %s for %v with %d failures, want %v", name, i.Status, delay, i.Failures, c.delay)
			}
		}
	})
}

// A retry-after counts as an attempt: the policy's maximum holds.
func TestRetryAfterCountsAsAnAttempt(t *testing.T) {
	each(t, func(f *fixture) {
		var runs counter
		d := machine("patient", func(context.Context, run) (fsm.Outcome, error) {
			runs.add()
			return fsm.Outcome{}, retry.After(time.Second, errors.New("busy"))
		}, with{Retry: retry.Fixed(3, time.Hour)})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for range 5 {
			f.after(time.Second)
		}
		runs.is(f.t, "runs", 3)
		f.wantStatus(id, fsm.Failed)
	})
}

// A step without a policy outlives an outage of two days.
func TestTheDefaultPolicyOutlivesALongOutage(t *testing.T) {
	each(t, func(f *fixture) {
		down := f.clock.Now().Add(40 * time.Hour)
		d := machine("durable", func(_ context.Context, r run) (fsm.Outcome, error) {
			if f.clock.Now().Before(down) {
				return fsm.Outcome{}, errors.New("down")
			}
			return r.Done(nil), nil
		})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for range 60 {
			f.after(time.Hour)
		}
		f.wantStatus(id, fsm.Done)
	})
}

func TestAStepWithAPolicyThatCannotBeObeyedIsRefused(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("bad", 1, nil, fsm.Step("only", done, &fsm.StepOptions{Retry: retry.Policy{Kind: "sometimes", MaxAttempts: 1}}))
		if err := f.Register(d); err == nil {
			f.t.Error("it was registered")
		}
	})
}

// failing returns a definition that fails with every attempt.
func failing(p retry.Policy) *fsm.Definition[int] {
	return fsm.Define("doomed", 1, &with{Retry: p}, fsm.Step("only", func(context.Context, run) (fsm.Outcome, error) { return fsm.Outcome{}, errors.New("down") }, nil))
}

// wantFailed checks that an instance has failed, with that number of attempts.
func (f *fixture) wantFailed(id string, attempts int) {
	f.t.Helper()
	if i := f.get(id); i.Status != fsm.Failed || i.Attempt != attempts {
		f.t.Errorf("the instance is %s after %d attempts, want %s after %d", i.Status, i.Attempt, fsm.Failed, attempts)
	}
}

// A deployment with another policy does not change what instances were promised.
func TestInstancesKeepThePolicyTheyWereStartedWith(t *testing.T) {
	each(t, func(f *fixture) {
		before, after := failing(retry.Fixed(2, time.Second)), failing(retry.Fixed(4, time.Second))
		f.register(before)
		f.drain() // which records the policy
		old := start(f, before, 0, nil)
		f.clock.Advance(time.Second)
		next := f.beside(f.clock, nil)
		next.register(after)
		next.drain()
		renewed := start(next, after, 0, nil)
		for range 4 {
			next.drain()
			f.clock.Advance(time.Second)
		}
		f.wantFailed(old, 2)
		f.wantFailed(renewed, 4)
	})
}

func TestChangeRetryBindsStartedInstancesOnly(t *testing.T) {
	each(t, func(f *fixture) {
		d := failing(retry.Fixed(2, time.Second))
		f.register(d)
		other := f.beside(f.clock, nil)
		other.register(d)
		old := start(f, d, 0, nil)
		f.drain() // the first failure, by the policy of the definition
		f.clock.Advance(time.Second)
		if err := other.ChangeRetry(f.t.Context(), "doomed", 1, "only", retry.Fixed(5, time.Second)); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(time.Second)
		later := start(f, d, 0, nil)
		for range 6 {
			f.drain()
			f.clock.Advance(time.Second)
		}
		f.wantFailed(old, 5)
		f.wantFailed(later, 2)
	})
}

func TestChangeRetryRefusesWhatItCannotDo(t *testing.T) {
	each(t, func(f *fixture) {
		var missing *fault.NotFound
		if err := f.ChangeRetry(f.t.Context(), "unknown", 1, "", retry.None()); !errors.As(err, &missing) {
			f.t.Errorf("an unknown definition: %v", err)
		}
		var invalid *fault.Invalid
		if err := f.ChangeRetry(f.t.Context(), "unknown", 1, "", retry.Policy{}); !errors.As(err, &invalid) {
			f.t.Errorf("no policy: %v", err)
		}
	})
}
