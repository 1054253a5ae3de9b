package fsm_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
			only := fsm.Step("only", func(context.Context, run) (fsm.Outcome, error) { return fsm.Outcome{}, c.err })
			d := fsm.Define("m "+name, 1, only.Retry(c.step)).Retry(retry.Fixed(3, time.Minute))
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
		}).Retry(retry.Fixed(3, time.Hour))
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
		d := fsm.Define("bad", 1, fsm.Step("only", done).Retry(retry.Policy{Kind: "sometimes", MaxAttempts: 1}))
		if err := f.Register(d); err == nil {
			f.t.Error("it was registered")
		}
	})
}
