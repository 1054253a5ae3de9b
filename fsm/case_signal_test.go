package fsm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// race runs all functions at once and waits for them.
func race(fns ...func()) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for _, fn := range fns {
		all.Go(func() { <-begin; fn() })
	}
	close(begin)
	all.Wait()
}

// Deliver races park: nobody waits beside a signal that he waits for. 200 rounds
// (the notes: 10,000), times PERDURE_SOAK.
func TestCase31DeliverRacesPark(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parker("racer", "go")
		f.register(d)
		for range rounds(10) {
			started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 20), nil)
			enginetest.NoError(t, err)
			senders := []func(){func() { f.drain() }}
			for _, s := range started {
				senders = append(senders, func() { f.send(s.ID, "go", nil) })
			}
			race(senders...)
			f.drain()
			for _, s := range started {
				f.wantResult(s.ID, "1")
			}
		}
		f.wantRows("signals", 0)
	})
}

// A signal is seen exactly once, whenever it comes.
func TestCase32ASignalIsSeenOnceWheneverItComes(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var during string
		var once sync.Once
		d := fsm.Define("always open", 1, &with{OnError: func(_ context.Context, r run, err error) (fsm.Outcome, error) { return r.Stop(err.Error()), nil }},
			fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.ID == during {
					once.Do(func() { f.send(r.ID, "go", "during") })
				}
				return r.Next("second"), nil
			}, nil),
			fsm.Step("second", always(func(r run) fsm.Outcome { return r.Await("go").Then("end") }), nil),
			fsm.Step("end", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.Attempt == 1 && r.State == 1 {
					return r.Replay(time.Hour), nil // the signals stay
				}
				if len(r.Awaited) != 1 || len(r.All) != 1 {
					return r.Stop(fmt.Sprintf("was given %d of %d signals", len(r.Awaited), len(r.All))), nil
				}
				return r.Await("go").Then("end").Within(time.Minute), nil
			}, nil),
		)
		f.register(d)
		before := start(f, d, 0, nil)
		f.send(before, "go", "before")
		during = start(f, d, 0, nil)
		f.drain()
		parked := start(f, d, 0, nil)
		f.drain()
		f.send(parked, "go", "parked")
		runnable := start(f, d, 1, nil)
		f.drain()
		f.send(runnable, "go", "runnable")
		f.drain()
		f.after(time.Hour) // the replay, and the timeouts of the others
		for _, id := range []string{before, during, parked} {
			if got := f.get(id); got.Status != fsm.Stopped || got.Error != "was given 0 of 0 signals" {
				t.Errorf("%s: %s", got.Status, got.Error)
			}
		}
		f.wantWait(runnable, fsm.ForSignal)
		f.wantRows("signals", 0)
	})
}

// A key is remembered before consumption, after it, and by another process.
func TestCase36ADuplicateIsProcessedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var handled counter
		d := fsm.Define("loop", 1, nil, fsm.Step("turn", func(_ context.Context, r run) (fsm.Outcome, error) {
			handled.n.Add(int64(len(r.Awaited)))
			return r.Await("a").Then("turn"), nil
		}, nil))
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		deliver := func(eng *perdure.Engine, want bool) {
			t.Helper()
			got, err := fsm.Send(t.Context(), eng, id, "a", nil, &fsm.SignalOptions{Key: "k"})
			if err != nil || got.Duplicate != want {
				t.Errorf("%+v, %v, want duplicate: %v", got, err, want)
			}
		}
		deliver(f.eng, false)
		deliver(f.eng, true)
		f.drain()
		deliver(f.eng, true)
		deliver(f.other(nil).eng, true)
		f.drain()
		handled.is(t, "signals handled", 1)
	})
}

func TestCase37KeysBelongToTheirNames(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("both", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("b").Then("end") }), nil),
			fsm.Step("end", always(func(r run) fsm.Outcome { return r.Done(len(r.All)) }), nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		for _, name := range []string{"a", "b"} {
			got, err := fsm.Send(t.Context(), f.eng, id, name, nil, &fsm.SignalOptions{Key: "k"})
			if err != nil || got.Duplicate {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
		f.drain()
		f.wantResult(id, "2")
	})
}

func TestCase38ASignalThatNobodyCanReceiveIsAnError(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		finished, failed := start(f, leaf, 1, nil), start(f, leaf, 2, nil)
		cancelled := start(f, leaf, 1, &fsm.StartOptions{Delay: time.Hour})
		f.drain()
		enginetest.NoError(t, f.Cancel(t.Context(), cancelled, "no"))
		for id, want := range map[string]fsm.Status{finished: fsm.Done, failed: fsm.Stopped, cancelled: fsm.Cancelled} {
			_, err := fsm.Send(t.Context(), f.eng, id, "a", nil, &fsm.SignalOptions{Key: "k"})
			if got := refused(t, err, true); got.Status != string(want) || got.ID != id {
				t.Errorf("%+v, want %s", got, want)
			}
		}
		_, err := fsm.Send(t.Context(), f.eng, "00000000-0000-0000-0000-000000000000", "a", nil, nil)
		enginetest.As[*fault.NotFound](t, err)
		_, err = fsm.Send(t.Context(), f.eng, "x", "a", nil, nil)
		enginetest.As[*fault.Invalid](t, err)
		f.wantRows("signals", 0)
		f.wantRows("signal_keys", 0)
	})
}

// A signal that was never awaited races the end, of instances that take other
// signals and of those that take none: every acknowledged one stays with its
// instance. 200 rounds of each (the notes: 10,000), times PERDURE_SOAK.
func TestCase39ASignalRacesTheEnd(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		deaf := machine("deaf", done)
		keen := fsm.Define("keen", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("end") }), nil),
			fsm.Step("end", done, nil),
		)
		f.register(deaf, keen)
		var acknowledged counter
		for i := range rounds(10) {
			d := deaf
			if i%2 == 1 {
				d = keen
			}
			started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 20), nil)
			enginetest.NoError(t, err)
			if d == keen {
				f.drain()
				for _, s := range started {
					f.send(s.ID, "go", nil)
				}
			}
			senders := []func(){func() { f.drain() }}
			for _, s := range started {
				senders = append(senders, func() {
					_, err := fsm.Send(t.Context(), f.eng, s.ID, "late", nil, nil)
					var ended *perdure.StateError
					switch {
					case err == nil:
						acknowledged.add()
					case !errors.As(err, &ended):
						t.Error(err)
					}
				})
			}
			race(senders...)
			f.drain()
			for _, s := range started {
				f.wantStatus(s.ID, fsm.Done)
			}
		}
		f.wantRows("signals", acknowledged.n.Load())
		f.clock.Advance(time.Hour)
		_, err := f.Purge(t.Context(), time.Minute)
		enginetest.NoError(t, err)
		f.wantRows("signals", 0)
	})
}

// A signal that comes after the inbox was read is not consumed with what was in it.
func TestCase40ALateSignalSurvivesTheConsumption(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("late", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("handle") }), nil),
			fsm.Step("handle", func(_ context.Context, r run) (fsm.Outcome, error) {
				r.State += len(r.Awaited)
				if r.State == 1 {
					f.send(r.ID, "go", "late") // after our snapshot
				}
				if r.State == 2 {
					return r.Done(r.State), nil
				}
				return r.Await("go").Then("handle"), nil
			}, nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.send(id, "go", "in time")
		f.drain()
		f.wantResult(id, "2")
	})
}

// A signal and the timeout come at the same instant: one of them wakes the
// instance, and no timer is left for a later wait. 200 rounds (the notes: 1,000),
// times PERDURE_SOAK.
func TestCase41ASignalRacesTheTimeout(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var runs tally
		d := fsm.Define("timed", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("woken").Within(time.Minute) }), nil),
			fsm.Step("woken", func(_ context.Context, r run) (fsm.Outcome, error) {
				runs.add(r.ID)
				if !r.TimedOut && len(r.Awaited) != 1 {
					return r.Stop("was woken for nothing"), nil
				}
				return r.Await("never").Then("woken").Within(24 * time.Hour), nil
			}, nil),
		)
		f.register(d)
		for range rounds(10) {
			started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 20), nil)
			enginetest.NoError(t, err)
			f.drain()
			f.clock.Advance(time.Minute)
			senders := []func(){func() { f.drain() }}
			for _, s := range started {
				senders = append(senders, func() { f.send(s.ID, "go", nil) })
			}
			race(senders...)
			f.drain()
			f.after(time.Minute)
			for _, s := range started {
				f.wantWait(s.ID, fsm.ForSignal)
				if n := runs.of(s.ID); n != 1 {
					t.Errorf("it was woken %d times", n)
				}
			}
		}
	})
}

// A sender's transaction is open for long: its target is claimed, run and ended
// nevertheless, and the signal stays with it.
func TestCase42AnOpenSenderDoesNotHideItsTarget(t *testing.T) {
	t.Parallel()
	eachServer(t, "join", func(t *testing.T, db enginetest.Database) {
		f := newFixture(t, db, nil)
		ran := make(chan struct{})
		d := machine("target", func(_ context.Context, r run) (fsm.Outcome, error) { close(ran); return r.Done(len(r.All)), nil })
		f.register(d)
		id := start(f, d, 0, nil)
		tx, err := f.db.SQL(t).BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		enginetest.NoError(t, err)
		enginetest.NoError(t, f.eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error {
			_, err := fsm.SendIn(tx, id, "go", nil, nil)
			return err
		}))
		wait := f.begin()
		<-ran
		wait()
		f.wantResult(id, "0")
		enginetest.NoError(t, tx.Commit())
		f.wantInbox(id, "null false")
	})
}

// What a wait ended with is the same for every attempt of the step.
func TestAReplayKnowsThatTheWaitTimedOut(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("timed", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("go").Then("end").Within(time.Minute) }), nil),
			fsm.Step("end", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.Attempt == 1 {
					return r.Replay(time.Minute), nil
				}
				return r.Done(r.TimedOut), nil
			}, nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.after(minute)
		f.after(minute)
		f.wantResult(id, "true")
	})
}

// Signals are part of the sender's unit of work.
func TestASignalIsPartOfItsUnit(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parker("target", "go")
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		sorry := errors.New("sorry")
		err := f.eng.Update(t.Context(), func(tx *perdure.Tx) error {
			if _, err := fsm.SendIn(tx, id, "go", nil, &fsm.SignalOptions{Key: "k"}); err != nil {
				return err
			}
			return sorry
		})
		enginetest.Is(t, err, sorry)
		f.drain()
		f.wantWait(id, fsm.ForSignal)
		f.wantRows("signal_keys", 0)
		err = f.eng.Update(t.Context(), func(tx *perdure.Tx) error {
			for range 3 {
				if _, err := fsm.SendIn(tx, id, "go", nil, &fsm.SignalOptions{Key: "k"}); err != nil {
					return err
				}
			}
			return nil
		})
		enginetest.NoError(t, err)
		f.drain()
		f.wantResult(id, "1")
	})
}
