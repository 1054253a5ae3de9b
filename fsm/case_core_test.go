package fsm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
)

// Every state is committed before the step that follows begins, also when the
// same claim goes on with it.
func TestCase01StatesAreCommittedBeforeTheNextStep(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var steps []fsm.StepOf[int]
		for i := range 5 {
			steps = append(steps, fsm.Step(fmt.Sprint("s", i), func(ctx context.Context, r run) (fsm.Outcome, error) {
				stored, err := f.Get(ctx, r.ID)
				if err != nil {
					return fsm.Outcome{}, err
				}
				if want := fmt.Sprint(i); stored.Step != r.Step || string(stored.State) != want || r.State != i {
					return r.Stop(fmt.Sprintf("stored are step %s and state %s in step %s, want state %s", stored.Step, stored.State, r.Step, want)), nil
				}
				r.State++
				if i == 4 {
					return r.Done(r.State), nil
				}
				return r.Next(fmt.Sprint("s", i+1)), nil
			}, nil))
		}
		d := fsm.Define("chain", 1, nil, steps...)
		f.register(d)
		id := start(f, d, 0, nil)
		if n := f.drain(); n != 1 {
			t.Errorf("%d claims for a chain within the budget, want 1", n)
		}
		f.wantResult(id, "5")
	})
}

// A process dies between the effect of a step and its outcome: the step runs
// again on the same state, the crash is counted apart from the attempts, and the
// error handler has nothing to do with it.
func TestCase02ACrashBeforeTheOutcomeRunsTheStepAgain(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var effects counter
		var lost counter
		g := newGate(t)
		d := machine("effect", func(_ context.Context, r run) (fsm.Outcome, error) {
			r.State++
			if effects.add() == 1 {
				g.pass(r.ID)
			}
			return r.Done([]int{r.State, r.Attempt, r.Crashes}), nil
		}, with{OnError: func(_ context.Context, r run, err error) (fsm.Outcome, error) {
			t.Errorf("the error handler was told of a crash: %v", err)
			return r.Stop("handled"), nil
		}})
		dead := f.other(quiet(&lost))
		dead.register(d)
		f.register(d)
		id := start(f, d, 7, nil)
		wait := dead.begin()
		g.await(t)
		f.after(minute)
		f.wantResult(id, "[8,1,1]")
		effects.is(t, "effects", 2)
		g.release()
		wait()
		lost.is(t, "outcomes of the dead", 1)
		f.wantResult(id, "[8,1,1]")
	})
}

// A process dies after a step was committed: that step never runs again.
func TestCase03ACommittedStepIsNotRepeated(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var first, second, lost counter
		g := newGate(t)
		d := fsm.Define("two", 1, nil,
			fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
				first.add()
				r.State++
				return r.Next("second"), nil
			}, nil),
			fsm.Step("second", func(_ context.Context, r run) (fsm.Outcome, error) {
				if second.add() == 1 {
					g.pass(r.ID)
				}
				return r.Done(r.State), nil
			}, nil),
		)
		dead := f.other(quiet(&lost))
		dead.register(d)
		f.register(d)
		id := start(f, d, 0, nil)
		wait := dead.begin()
		g.await(t)
		f.after(minute)
		f.wantResult(id, "1")
		first.is(t, "runs of the first step", 1)
		second.is(t, "runs of the second step", 2)
		g.release()
		wait()
	})
}

func TestCase04ReplayCountsAttemptsAndKeepsTheState(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var seen []string
		d := machine("replay", func(_ context.Context, r run) (fsm.Outcome, error) {
			seen = append(seen, fmt.Sprintf("attempt %d state %d", r.Attempt, r.State))
			r.State += 10
			if r.Attempt == 4 {
				return r.Done(r.State), nil
			}
			return r.Replay(time.Hour), nil
		})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for range 3 {
			before := len(seen)
			f.wantStatus(id, fsm.Scheduled)
			if want := f.clock.Now().Add(time.Hour); !f.get(id).Due.Equal(want) {
				t.Errorf("due at %v, want %v", f.get(id).Due, want)
			}
			if f.after(time.Hour - time.Microsecond); len(seen) != before {
				t.Error("it ran too early")
			}
			f.after(time.Microsecond)
		}
		f.wantResult(id, "40")
		want := []string{"attempt 1 state 0", "attempt 2 state 10", "attempt 3 state 20", "attempt 4 state 30"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// A panic goes to the error handler with everything about the step, and on a
// fresh copy of the state; each kind of outcome is accepted from it.
func TestCase05TheHandlerMayReturnAnyOutcome(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		for name, c := range map[string]struct {
			outcome func(r run) fsm.Outcome
			status  fsm.Status
		}{
			"next":   {func(r run) fsm.Outcome { return r.Next("end") }, fsm.Done},
			"replay": {func(r run) fsm.Outcome { return r.Replay(time.Hour) }, fsm.Retrying},
			"await":  {func(r run) fsm.Outcome { return r.Await("x").Then("end") }, fsm.Waiting},
			"spawn":  {func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(leaf, 1, nil)).Then("end") }, fsm.Done},
			"done":   {func(r run) fsm.Outcome { return r.Done("saved") }, fsm.Done},
			"stop":   {func(r run) fsm.Outcome { return r.Stop("given up") }, fsm.Stopped},
		} {
			var told string
			d := fsm.Define("panics "+name, 1, &with{OnError: func(_ context.Context, r run, err error) (fsm.Outcome, error) {
				told = fmt.Sprintf("%s %d %d %v", r.Step, r.Attempt, r.State, strings.Contains(err.Error(), "at the disco"))
				return c.outcome(r), nil
			}},
				fsm.Step("boom", func(_ context.Context, r run) (fsm.Outcome, error) { r.State = 99; panic("at the disco") }, nil),
				fsm.Step("end", done, nil),
			)
			f.register(d)
			id := start(f, d, 7, nil)
			f.drain()
			f.wantStatus(id, c.status)
			if told != "boom 1 7 true" {
				t.Errorf("%s: the handler was told %q", name, told)
			}
			if f.Cancel(t.Context(), id, "the test is over") != nil {
				continue // it has ended
			}
		}
	})
}

func TestCase06AHandlerThatPanicsFailsTheInstance(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := machine("worse", func(context.Context, run) (fsm.Outcome, error) { return fsm.Outcome{}, errors.New("first trouble") }, with{OnError: func(context.Context, run, error) (fsm.Outcome, error) { panic("second trouble") }})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Failed)
		if got := f.get(id).Error; !strings.Contains(got, "first trouble") || !strings.Contains(got, "second trouble") {
			t.Errorf("its error is %q, want both troubles", got)
		}
	})
}

// What cannot be serialised goes to the error handler, like any other failure of
// the step.
func TestCase07AResultThatDoesNotSerialiseGoesToTheHandler(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var handled counter
		d := machine("channel", func(_ context.Context, r run) (fsm.Outcome, error) { return r.Done(make(chan int)), nil }, with{OnError: func(_ context.Context, r run, err error) (fsm.Outcome, error) {
			handled.add()
			return r.Stop("cannot: " + err.Error()), nil
		}})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Stopped)
		handled.is(t, "calls of the handler", 1)
	})
}

func TestCase08AnyErrorTextCanBeStored(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		for i, text := range []string{"a\x00b", "bad \xff\xfe utf-8", strings.Repeat("long", 1<<20), ""} {
			for name, fail := range map[string]step{
				"error": func(context.Context, run) (fsm.Outcome, error) { return fsm.Outcome{}, errors.New(text) },
				"panic": func(context.Context, run) (fsm.Outcome, error) { panic(text) },
				"stop":  func(_ context.Context, r run) (fsm.Outcome, error) { return r.Stop(text), nil },
			} {
				d := machine(fmt.Sprint(name, " ", i), fail, with{Retry: once})
				f.register(d)
				id := start(f, d, 0, nil)
				f.drain()
				want := fsm.Failed
				if name == "stop" {
					want = fsm.Stopped
				}
				f.wantStatus(id, want)
				if err := f.Retry(t.Context(), id); err != nil {
					t.Error(err)
				}
				if err := f.Cancel(t.Context(), id, text); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// A state makes the round trip without a change, or is refused with a typed error
// where it enters; there is no third way.
func TestCase09StatesMakeTheRoundTripOrAreRefused(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("state", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[json.RawMessage]) (fsm.Outcome, error) {
			return r.Done(r.State), nil
		}, nil))
		f.register(d)
		for name, c := range map[string]struct {
			state string
			good  bool
		}{
			"great integer":  {`{"n":9223372036854775808,"m":18446744073709551615}`, true},
			"long fraction":  {`{"n":0.1000000000000000055511151231257827}`, true},
			"almost the cap": {`"` + strings.Repeat("x", 1<<20-2) + `"`, true},
			"over the cap":   {`"` + strings.Repeat("x", 1<<20-1) + `"`, false},
			"NUL":            {`{"s":"a\u0000b"}`, false},
			"lone surrogate": {`{"s":"\ud800"}`, false},
			"too deep":       {strings.Repeat("[", 100) + strings.Repeat("]", 100), false},
			"no JSON":        {`{`, false},
		} {
			started, err := fsm.Start(t.Context(), f.eng, d, json.RawMessage(c.state), nil)
			var invalid *fault.Invalid
			switch {
			case c.good && err != nil:
				t.Errorf("%s: %v", name, err)
			case c.good:
				f.drain()
				f.wantResult(started.ID, c.state)
			case !errors.As(err, &invalid):
				t.Errorf("%s: %v, want *fault.Invalid", name, err)
			}
		}
		f.wantRows("signals", 0)
		nan := fsm.Define("nan", 1, &fsm.DefinitionOptions[float64]{Retry: once}, fsm.Step("only", func(_ context.Context, r *fsm.Run[float64]) (fsm.Outcome, error) {
			r.State = math.NaN()
			return r.Replay(0), nil
		}, nil))
		f.register(nan)
		id := start(f, nan, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Failed)
	})
}

// An instance of a machine or version that this process does not know costs
// nothing and is run by a process that knows it, once that is there.
func TestCase10UnknownMachinesWaitForAProcessThatKnowsThem(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		one := machine("m", done)
		two := fsm.Define("m", 2, nil, fsm.Step("only", done, nil))
		f.register(one)
		known, later, alien := start(f, one, 1, nil), start(f, two, 2, nil), start(f, machine("alien", done), 3, nil)
		f.drain()
		f.wantResult(known, "1")
		f.wantStatus(later, fsm.NoWorker)
		f.wantStatus(alien, fsm.NoWorker)
		if n := f.after(time.Hour); n != 0 {
			t.Errorf("%d unknown instances were claimed again", n)
		}
		elsewhere := f.other(&fsm.Options{Queues: map[string]int{"elsewhere": 1}})
		elsewhere.register(two)
		if n := elsewhere.drain(); n != 0 {
			t.Errorf("a process that does not serve the queue ran %d", n)
		}
		f.wantStatus(later, fsm.NoWorker)
		newer := f.other(nil)
		newer.register(two)
		if at, err := newer.NextWakeAt(t.Context()); err != nil || at.IsZero() {
			t.Errorf("a process that knows it wakes at %v, %v, want now", at, err)
		}
		newer.drain()
		f.wantResult(later, "2")
		if got := f.get(later); got.Attempt != 1 || got.Crashes != 0 {
			t.Errorf("it cost %d attempts and %d crashes", got.Attempt, got.Crashes)
		}
		f.wantStatus(alien, fsm.NoWorker)
		if err := f.Cancel(t.Context(), alien, "nobody knows it"); err != nil {
			t.Error(err)
		}
	})
}
