package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

func (f *fixture) attempts(id string) []retry.Attempt {
	f.t.Helper()
	attempts, err := f.Attempts(f.t.Context(), id)
	enginetest.NoError(f.t, err)
	return attempts
}

// wantAttempts fails the test unless the instance has these attempts, which all tell
// who made them if they did not succeed.
func (f *fixture) wantAttempts(id string, want ...retry.Attempt) {
	f.t.Helper()
	got := f.attempts(id)
	if len(got) != len(want) {
		f.t.Fatalf("the attempts are %+v, want %+v", got, want)
	}
	for i, a := range got {
		if (a.Worker == "") != (a.Outcome == retry.Succeeded) {
			f.t.Errorf("attempt %d was made by %q", i+1, a.Worker)
		}
		a.Worker = ""
		if a != want[i] {
			f.t.Errorf("attempt %d is %+v, want %+v", i+1, a, want[i])
		}
	}
}

// stumbling is a machine whose second step takes a second and fails twice.
func stumbling(f *fixture, history bool) *fsm.Definition[int] {
	return fsm.Define("stumbling", 1, &with{Retry: retry.Fixed(3, time.Minute), KeepHistory: history},
		fsm.Step("first", always(func(r run) fsm.Outcome { return r.Next("second") }), nil),
		fsm.Step("second", func(_ context.Context, r run) (fsm.Outcome, error) {
			f.clock.Advance(time.Second)
			if r.Attempt < 3 {
				return fsm.Outcome{}, fmt.Errorf("no luck %d", r.Attempt)
			}
			return r.Done(nil), nil
		}, nil),
	)
}

func TestEachAttemptOfAStepThatFailsIsTold(t *testing.T) {
	for _, history := range []bool{false, true} {
		t.Run(fmt.Sprintf("history %v", history), func(t *testing.T) {
			each(t, func(f *fixture) {
				d := stumbling(f, history)
				f.register(d)
				id := start(f, d, 0, nil)
				began := f.clock.Now()
				for range 3 {
					f.drain()
					f.clock.Advance(time.Minute)
				}
				f.wantStatus(id, fsm.Done)
				cycle := time.Minute + time.Second
				second := func(n int, outcome retry.Outcome, err string) retry.Attempt {
					at := began.Add(time.Duration(n-1) * cycle)
					return retry.Attempt{Number: n, Step: "second", Outcome: outcome, Error: err, Began: at, Ended: at.Add(time.Second)}
				}
				last := second(3, retry.Succeeded, "")
				last.Began = time.Time{} // success leaves nothing but the end
				f.wantAttempts(id, second(1, retry.Failed, "no luck 1"), second(2, retry.Failed, "no luck 2"), last)
				f.wantRows("attempts", 2)
			})
		})
	}
}

func TestAStepThatPanicsIsToldWithItsStack(t *testing.T) {
	each(t, func(f *fixture) {
		d := machine("panics", func(context.Context, run) (fsm.Outcome, error) { panic("oh no") }, with{Retry: once})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Failed)
		got := f.attempts(id)
		if len(got) != 1 || !strings.Contains(got[0].Error, "oh no") || !strings.Contains(got[0].Error, "attempt_test.go") {
			f.t.Fatalf("the attempts are %+v", got)
		}
	})
}

// To stop is no failure.
func TestAStepThatStopsItsInstanceIsASuccessfulAttempt(t *testing.T) {
	each(t, func(f *fixture) {
		d := machine("stops", always(func(r run) fsm.Outcome { return r.Stop("out of stock") }))
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantAttempts(id, retry.Attempt{Number: 1, Step: "only", Outcome: retry.Succeeded, Ended: f.clock.Now()})
	})
}

// A process that has lost its claim must not write: its attempt was told by whoever
// has returned the claim.
func TestAnAttemptThatLosesItsLeaseIsToldOnceAsLost(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		g := newGate(t)
		d := machine("slow", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.Crashes == 0 {
				g.pass(r.ID)
				return fsm.Outcome{}, errors.New("too late")
			}
			return r.Done(nil), nil
		})
		f.register(d)
		id := start(f, d, 0, nil)
		began := f.clock.Now()
		wait := f.arrives(g)
		f.wantAttempts(id, retry.Attempt{Number: 1, Step: "only", Outcome: retry.Running, Began: began})

		other := f.other(nil)
		other.register(d)
		f.expireLeases()
		other.drain()
		other.after(minute)
		other.wantStatus(id, fsm.Done)
		g.release()
		wait()
		got := f.attempts(id)
		if len(got) != 2 || got[0].Outcome != retry.Lost || got[0].Error == "" || got[0].Worker == "" || !got[0].Began.Equal(began) || got[1].Outcome != retry.Succeeded {
			t.Fatalf("the attempts are %+v", got)
		}
		f.wantRows("attempts", 1)
	})
}

func TestAnAttemptThatIsCancelledIsTold(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		g := newGate(f.t)
		d := machine("slow", func(_ context.Context, r run) (fsm.Outcome, error) { g.pass(r.ID); return r.Done(nil), nil })
		f.register(d)
		id := start(f, d, 0, nil)
		began := f.clock.Now()
		wait := f.arrives(g)
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "enough"))
		g.release()
		wait()
		f.wantAttempts(id, retry.Attempt{Number: 1, Step: "only", Outcome: retry.Cancelled, Error: "enough", Began: began, Ended: began})
	})
}

func TestTheNewestAttemptsOfAnInstanceAreKept(t *testing.T) {
	each(t, func(f *fixture) {
		const more = 2
		d := machine("unlucky", func(context.Context, run) (fsm.Outcome, error) { return fsm.Outcome{}, errors.New("no") }, with{Retry: retry.Fixed(retry.MaxRecorded+more, time.Second)})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for range retry.MaxRecorded + more - 1 {
			f.after(time.Second)
		}
		f.wantStatus(id, fsm.Failed)
		got := f.attempts(id)
		if len(got) != retry.MaxRecorded || got[0].Number != more+1 || got[len(got)-1].Number != retry.MaxRecorded+more {
			f.t.Fatalf("%d attempts, from %+v", len(got), got[0])
		}
	})
}

func TestAttemptsGoWithTheirInstance(t *testing.T) {
	each(t, func(f *fixture) {
		d := stumbling(f, false)
		f.register(d)
		id := start(f, d, 0, nil)
		for range 3 {
			f.drain()
			f.clock.Advance(time.Hour)
		}
		f.wantStatus(id, fsm.Done)
		f.wantRows("attempts", 2)
		n, err := f.Purge(f.t.Context(), time.Minute)
		if err != nil || n != 1 {
			f.t.Fatalf("purged %d, %v", n, err)
		}
		f.wantRows("attempts", 0)
		var missing *fault.NotFound
		if _, err := f.Attempts(f.t.Context(), id); !errors.As(err, &missing) {
			f.t.Errorf("attempts of an instance that is gone: %v", err)
		}
	})
}
