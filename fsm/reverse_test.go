package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// signup waits for a confirmation and tells a confirmed one from a timeout.
func signup() *fsm.Definition[int] {
	return fsm.Define("signup", 1, nil,
		fsm.Step("welcome", always(func(r run) fsm.Outcome { return r.Await("confirmed").Then("confirm").Within(48 * time.Hour) }), nil),
		fsm.Step("confirm", always(func(r run) fsm.Outcome {
			if r.TimedOut {
				return r.Done("never confirmed")
			}
			return r.Done(fmt.Sprintf("a customer after %d signals", len(r.Awaited)))
		}), nil),
	)
}

// An instance that was ended while it waited, by an operator or by its deadline,
// waits again after a retry: for the signal, or for the rest of the time.
func TestRetryOfAWaitWaitsAgain(t *testing.T) {
	ends := map[string]func(f *fixture, id string){
		"cancelled": func(f *fixture, id string) { enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "a mistake")) },
		"deadline":  func(f *fixture, id string) { f.after(time.Hour); f.wantStatus(id, fsm.Failed) },
	}
	partitions := map[string]string{"alone": "", "in a partition": "p"}
	each(t, func(f *fixture) {
		t := f.t
		d := signup()
		f.register(d)
		for how, end := range ends {
			for where, partition := range partitions {
				options := &fsm.StartOptions{Partition: partition}
				if how == "deadline" {
					options.Deadline = time.Hour
				}
				confirmed, silent := start(f, d, 0, options), start(f, d, 0, &fsm.StartOptions{Deadline: options.Deadline})
				for _, id := range []string{confirmed, silent} {
					f.drain()
					f.wantWait(id, fsm.ForSignal)
				}
				end(f, confirmed)
				if how == "cancelled" {
					f.after(time.Hour)
					end(f, silent)
				}
				f.clock.Advance(10 * time.Hour) // the wait stands still while it has ended
				for _, id := range []string{confirmed, silent} {
					enginetest.NoError(t, f.Retry(t.Context(), id))
					f.drain()
					f.wantWait(id, fsm.ForSignal)
				}
				f.send(confirmed, "confirmed", nil)
				f.after(46 * time.Hour)
				f.wantResult(confirmed, `"a customer after 1 signals"`)
				f.wantWait(silent, fsm.ForSignal)
				f.after(2 * time.Hour)
				f.wantResult(silent, `"never confirmed"`)
				t.Logf("%s, %s", how, where)
			}
		}
	})
}

// A retried instance that queues up in its partition waits for its turn, and then
// for its signal.
func TestRetryOfAWaitBehindAnotherHeadWaitsAgain(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := signup()
		f.register(d)
		options := &fsm.StartOptions{Partition: "p"}
		first := start(f, d, 0, options)
		f.drain()
		enginetest.NoError(t, f.Cancel(t.Context(), first, "a mistake"))
		second := start(f, d, 0, options)
		f.drain()
		enginetest.NoError(t, f.Retry(t.Context(), first))
		f.drain()
		f.wantWait(first, fsm.ForTurn)
		f.send(second, "confirmed", nil)
		f.drain()
		f.wantStatus(second, fsm.Done)
		f.wantWait(first, fsm.ForSignal)
		f.send(first, "confirmed", nil)
		f.drain()
		f.wantResult(first, `"a customer after 1 signals"`)
	})
}

// A step that failed gets after a retry what it was given before: the signals, and
// whether the wait timed out.
func TestRetryGivesTheStepWhatItHad(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		broken := true
		d := fsm.Define("handles", 1, &with{Retry: once},
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("handle").Within(time.Hour) }), nil),
			fsm.Step("handle", func(_ context.Context, r run) (fsm.Outcome, error) {
				if broken {
					return fsm.Outcome{}, errors.New("no")
				}
				return r.Done(fmt.Sprint(len(r.Awaited), r.TimedOut)), nil
			}, nil),
		)
		f.register(d)
		handling, timedOut := start(f, d, 0, nil), start(f, d, 0, nil)
		f.drain()
		f.send(handling, "go", nil)
		f.after(2 * time.Hour)
		broken = false
		for id, want := range map[string]string{handling: `"1 false"`, timedOut: `"0 true"`} {
			f.wantStatus(id, fsm.Failed)
			enginetest.NoError(t, f.Retry(t.Context(), id))
			f.drain()
			f.wantResult(id, want)
		}
	})
}

// A retried instance has what was left of its deadline.
func TestRetryRestoresTheRestOfTheDeadline(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parker("bounded", "go")
		f.register(d)
		id := start(f, d, 0, &fsm.StartOptions{Deadline: 3 * time.Hour})
		f.drain()
		f.after(time.Hour)
		enginetest.NoError(t, f.Cancel(t.Context(), id, "a mistake"))
		f.clock.Advance(10 * time.Hour)
		enginetest.NoError(t, f.Retry(t.Context(), id))
		f.after(119 * time.Minute)
		f.wantWait(id, fsm.ForSignal)
		f.after(time.Minute)
		f.wantStatus(id, fsm.Failed)
	})
}

// program is the state of a machine that runs a script.
type program struct {
	At    int
	Trace []string
}

// action is one step of a script.
type action struct {
	kind  string // next, replay, await
	names []string
	limit time.Duration
	keep  bool
}

// event happens to an instance from outside.
type event struct {
	signal string // or else time passes
	pass   time.Duration
}

var signalNames = []string{"a", "b", "c"}

func randomScript(r *rand.Rand) []action {
	script := make([]action, 2+r.IntN(5))
	for i := range script {
		a := action{kind: []string{"next", "replay", "await", "await", "await"}[r.IntN(5)]}
		for _, name := range signalNames {
			if r.IntN(2) == 0 {
				a.names = append(a.names, name)
			}
		}
		if len(a.names) == 0 {
			a.names = []string{"a"}
		}
		if a.limit = time.Duration(1+r.IntN(5)) * time.Minute; a.kind == "await" && r.IntN(3) == 0 {
			a.limit = 0
		}
		a.keep = r.IntN(4) == 0
		script[i] = a
	}
	return script
}

func randomEvents(r *rand.Rand) []event {
	events := make([]event, 4+r.IntN(8))
	for i := range events {
		if r.IntN(2) == 0 {
			events[i].signal = signalNames[r.IntN(len(signalNames))]
		} else {
			events[i].pass = time.Duration(1+r.IntN(4)) * time.Minute
		}
	}
	return events
}

// scripted runs a script. A run that is in broken fails, until it is retried.
func scripted(name string, script []action, broken *bool) *fsm.Definition[program] {
	return fsm.Define(name, 1, &fsm.DefinitionOptions[program]{Retry: once}, fsm.Step("run", func(_ context.Context, r *fsm.Run[program]) (fsm.Outcome, error) {
		line := fmt.Sprint(r.State.At, r.TimedOut, r.Rerun)
		for _, s := range r.Awaited {
			line += " " + s.Name + string(s.Payload)
		}
		if *broken {
			return fsm.Outcome{}, errors.New("broken")
		}
		r.State.Trace = append(r.State.Trace, line)
		if r.State.At == len(script) {
			return r.Done(r.State.Trace), nil
		}
		a := script[r.State.At]
		r.State.At++
		switch a.kind {
		case "next":
			return r.Next("run"), nil
		case "replay":
			return r.Replay(a.limit), nil
		}
		o := r.Await(a.names...).Then("run")
		if a.limit > 0 {
			o = o.Within(a.limit)
		}
		if a.keep {
			o = o.Keep()
		}
		return o, nil
	}, nil))
}

// play starts an instance of a script and lets the events happen to it. settle is
// called after each of them, to run what is due.
func (f *fixture) play(d *fsm.Definition[program], events []event, settle func(id string)) string {
	f.t.Helper()
	id := start(f, d, program{}, nil)
	settle(id)
	for n, e := range events {
		if e.signal == "" {
			f.clock.Advance(e.pass)
			settle(id)
			continue
		}
		var ended *perdure.StateError
		if _, err := fsm.Send(f.t.Context(), f.eng, id, e.signal, n, nil); err != nil && !errors.As(err, &ended) {
			f.t.Fatal(err)
		}
		settle(id)
	}
	got := f.get(id)
	return fmt.Sprintf("%s at %s: %s %d unreceived", got.Status, got.State, got.Result, got.Unreceived)
}

// An end that is retried leaves no trace: over random machines and events, an
// instance that is cancelled or fails at random moments, and is retried each time,
// ends as the one that was left alone.
func TestAnEndThatIsRetriedLeavesNoTrace(t *testing.T) {
	each(t, func(f *fixture) {
		for range rounds(12) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			script, events := randomScript(r), randomEvents(r)
			broken := false
			d := scripted(fmt.Sprint("p", seed), script, &broken)
			f.register(d)
			want := f.play(d, events, func(string) { f.drain() })
			got := f.play(d, events, func(id string) {
				broken = r.IntN(3) == 0
				f.drain()
				broken = false
				if r.IntN(3) == 0 {
					var ended *perdure.StateError
					if err := f.Cancel(f.t.Context(), id, "a mistake"); err != nil && !errors.As(err, &ended) {
						f.t.Error(err)
					}
				}
				if slices.Contains([]fsm.Status{fsm.Failed, fsm.Cancelled}, f.get(id).Status) {
					enginetest.NoError(f.t, f.Retry(f.t.Context(), id))
				}
				f.drain()
			})
			if got != want {
				f.t.Fatalf("seed %d: script %+v, events %+v\nundisturbed: %s\ndisturbed:   %s", seed, script, events, want, got)
			}
		}
	})
}
