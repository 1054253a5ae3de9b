package fsm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// handled returns how many signals the instances of a machine were given that count
// them: in their result, or in their state while they wait for more.
func (f *fixture) handled(name string) int {
	f.t.Helper()
	sum := 0
	for cursor := ""; ; {
		page, next, err := f.List(f.t.Context(), fsm.Filter{Definition: name}, cursor, 1000)
		enginetest.NoError(f.t, err)
		for _, i := range page {
			counted, n := i.Result, 0
			if i.WaitsFor == fsm.ForSignal {
				counted = i.State
			}
			if json.Unmarshal(counted, &n) == nil {
				sum += n
			}
		}
		if cursor = next; cursor == "" {
			return sum
		}
	}
}

// ending is a machine whose last step lets signals arrive while it runs.
func ending(name string, during func(r run), end func(r run) fsm.Outcome) *fsm.Definition[int] {
	return fsm.Define(name, 1, &with{KeepHistory: true},
		fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("end") }), nil),
		fsm.Step("end", func(_ context.Context, r run) (fsm.Outcome, error) {
			r.State += len(r.Awaited)
			during(r)
			return end(r), nil
		}, nil),
	)
}

// A signal that arrives during the last step is given to another run of that step,
// which knows that it is one, with Done and with Stop.
func TestASignalThatArrivesDuringTheLastStepIsReceived(t *testing.T) {
	ends := map[string]func(r run) fsm.Outcome{
		"done": func(r run) fsm.Outcome { return r.Done(r.State) },
		"stop": func(r run) fsm.Outcome { return r.Stop(fmt.Sprint(r.State)) },
	}
	each(t, func(f *fixture) {
		t := f.t
		for name, end := range ends {
			var runs []bool
			d := ending(name, func(r run) {
				if runs = append(runs, r.Rerun); len(runs) == 1 {
					f.send(r.ID, "go", nil)
				}
			}, end)
			f.register(d)
			id := start(f, d, 0, nil)
			f.drain()
			f.send(id, "go", nil)
			f.drain()
			got := f.get(id)
			if text := string(got.Result) + got.Error; text != "2" || got.Unreceived != 0 {
				t.Errorf("%s: ended %s with %q and %d unreceived signals, want 2 and 0", name, got.Status, text, got.Unreceived)
			}
			if !slices.Equal(runs, []bool{false, true}) {
				t.Errorf("%s: the runs of the last step were re-runs: %v", name, runs)
			}
			history, _, err := f.History(t.Context(), id, "", 0)
			enginetest.NoError(t, err)
			var outcomes []string
			for _, h := range history {
				outcomes = append(outcomes, h.Outcome)
			}
			if !slices.Equal(outcomes, []string{"await", "rerun", name}) {
				t.Errorf("%s: history is %v", name, outcomes)
			}
		}
	})
}

// A signal of a name that was awaited in an earlier step keeps a later step from
// ending, which gets it in Awaited although it waited for nothing.
func TestASignalThatWasAwaitedOnceIsGivenToTheLastStep(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("once", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("work") }), nil),
			fsm.Step("work", func(_ context.Context, r run) (fsm.Outcome, error) {
				f.send(r.ID, "go", nil)
				return r.Next("end"), nil
			}, nil),
			fsm.Step("end", always(func(r run) fsm.Outcome { return r.Done(len(r.Awaited)) }), nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.send(id, "go", nil)
		f.drain()
		f.wantResult(id, "1")
	})
}

// A signal that arrives while the step after a timeout ends the instance takes the
// timeout back.
func TestASignalThatArrivesAfterTheTimeoutTakesItBack(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("signup", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("end").Within(time.Hour) }), nil),
			fsm.Step("end", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.TimedOut {
					f.send(r.ID, "go", nil)
					return r.Stop("never confirmed"), nil
				}
				return r.Done(len(r.Awaited)), nil
			}, nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.after(time.Hour)
		f.wantResult(id, "1")
	})
}

// IgnoreSignals ends the instance regardless. The signals stay with it, are listed
// and counted, and are removed with it.
func TestAnInstanceThatEndsRegardlessKeepsItsSignals(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := ending("regardless", func(r run) { f.send(r.ID, "go", "late") }, func(r run) fsm.Outcome { return r.Done(r.State).IgnoreSignals() })
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.send(id, "go", "first")
		f.drain()
		f.wantResult(id, "1")
		f.wantInbox(id, `"late" false`)
		f.clock.Advance(time.Hour)
		_, err := f.Purge(t.Context(), time.Minute)
		enginetest.NoError(t, err)
		f.wantRows("signals", 0)
		again := machine("badly", always(func(r run) fsm.Outcome { return r.Next("only").IgnoreSignals() }), with{Retry: once})
		f.register(again)
		id = start(f, again, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Failed)
	})
}

// wantInbox fails the test unless the inbox has these payloads, each with whether a
// step was given it.
func (f *fixture) wantInbox(id string, want ...string) {
	f.t.Helper()
	inbox, err := f.Inbox(f.t.Context(), id)
	enginetest.NoError(f.t, err)
	var got []string
	unreceived := 0
	for _, s := range inbox {
		got = append(got, fmt.Sprintf("%s %v", s.Payload, s.Received))
		if !s.Received {
			unreceived++
		}
	}
	if !slices.Equal(got, want) || f.get(id).Unreceived != unreceived {
		f.t.Errorf("inbox is %v with %d unreceived, want %v", got, f.get(id).Unreceived, want)
	}
}

// Signals that no step was given stay with instances that are cancelled or fail,
// and with those that never awaited them.
func TestUnreceivedSignalsStayWithTheInstance(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		fails := fsm.Define("fails", 1, &with{Retry: once},
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("end") }), nil),
			fsm.Step("end", func(_ context.Context, r run) (fsm.Outcome, error) {
				f.send(r.ID, "go", "late")
				return fsm.Outcome{}, errors.New("no")
			}, nil),
		)
		cancelled, deaf := parker("cancelled", "go"), machine("deaf", done)
		f.register(fails, cancelled, deaf)
		failed, stopped := start(f, fails, 0, nil), start(f, cancelled, 0, nil)
		f.drain()
		f.send(failed, "go", "first")
		f.send(stopped, "other", "unasked")
		unheard := start(f, deaf, 0, nil)
		f.send(unheard, "other", "unheard")
		f.drain()
		enginetest.NoError(t, f.Cancel(t.Context(), stopped, "enough"))
		f.wantStatus(failed, fsm.Failed)
		f.wantInbox(failed, `"first" true`, `"late" false`)
		f.wantInbox(stopped, `"unasked" false`)
		f.wantInbox(unheard, `"unheard" false`)
	})
}

// The state that the last step leaves is stored with its result; a retry of a Stop
// continues with the state that the step was given.
func TestTheLastStepsStateIsStored(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var stops bool
		d := machine("last", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.State++; stops {
				return r.Stop("enough"), nil
			}
			return r.Done("result"), nil
		})
		f.register(d)
		for _, stops = range []bool{false, true} {
			id := start(f, d, 7, nil)
			f.drain()
			if got := f.get(id); string(got.State) != "8" {
				t.Errorf("state is %s, want 8", got.State)
			}
			if !stops {
				continue
			}
			stops = false
			enginetest.NoError(t, f.Retry(t.Context(), id))
			f.drain()
			f.wantStatus(id, fsm.Done)
			if got := f.get(id); string(got.State) != "8" {
				t.Errorf("state after the retry is %s, want 8", got.State)
			}
		}
	})
}

// The inbox of one instance has a cap. What is beyond it is refused with a typed
// error, and a duplicate is still a duplicate.
func TestTheInboxHasACap(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parker("full", "go")
		f.register(d)
		id := start(f, d, 0, nil)
		f.db.Exec(t, fmt.Sprintf(`insert into %s (target_id, name, payload, created_at)
			with recursive n (x) as (select 0 union all select x + 1 from n where x < 99)
			select i.id, 'other', '1', i.created_at from n, n m, %s i where n.x * 100 + m.x < %d`,
			f.table("signals"), f.table("instances"), fsm.MaxInbox-1))
		_, err := fsm.Send(t.Context(), f.eng, id, "other", nil, &fsm.SignalOptions{Key: "1"})
		enginetest.NoError(t, err)
		_, err = fsm.Send(t.Context(), f.eng, id, "other", nil, nil)
		full := enginetest.As[*fsm.InboxFullError](t, err)
		if full.ID != id || full.Limit != fsm.MaxInbox {
			t.Errorf("refused with %+v", full)
		}
		delivered, err := fsm.Send(t.Context(), f.eng, id, "other", nil, &fsm.SignalOptions{Key: "1"})
		enginetest.NoError(t, err)
		if !delivered.Duplicate {
			t.Error("a duplicate was delivered")
		}
		f.wantRows("signals", fsm.MaxInbox)
	})
}
