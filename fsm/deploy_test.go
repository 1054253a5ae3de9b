package fsm_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A new binary has one more step of the same version. The old one leaves an instance
// at that step to the new one, and neither of them loops.
func TestAnUnknownStepWaitsForAProcessThatHasIt(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		old := fsm.Define("order", 1, nil, fsm.Step("charge", done, nil))
		renewed := fsm.Define("order", 1, nil,
			fsm.Step("charge", always(func(r run) fsm.Outcome { return r.Await("paid").Then("ship") }), nil),
			fsm.Step("ship", always(func(r run) fsm.Outcome { return r.Done("shipped") }), nil),
		)
		newer := f.other(nil)
		newer.register(renewed)
		f.register(old)
		id := start(f, renewed, 0, nil)
		newer.drain()
		_, err := fsm.Send(t.Context(), f.eng, id, "paid", nil, nil)
		enginetest.NoError(t, err)
		if n := f.drain(); n != 1 {
			t.Errorf("the old process claimed the instance %d times, want once", n)
		}
		f.wantStatus(id, fsm.NoWorker)
		for range 3 {
			if n := f.after(time.Minute); n != 0 {
				t.Errorf("the old process claimed it again")
			}
		}
		if at, err := f.NextWakeAt(t.Context()); err != nil || !at.IsZero() && !at.After(f.clock.Now()) {
			t.Errorf("the old process would wake at %v, %v", at, err)
		}
		newer.clock.Advance(3 * time.Minute)
		newer.drain()
		f.wantResult(id, `"shipped"`)
		f.wantRows("unrouted", 0)
	})
}

// Rows of binaries that do not write the step are taken by a process that knows the
// definition.
func TestUnroutedRowsWithoutAStepAreTaken(t *testing.T) {
	each(t, func(f *fixture) {
		d := machine("late", done)
		unknowing := f.other(nil)
		id := start(f, d, 1, nil)
		unknowing.drain()
		f.wantStatus(id, fsm.NoWorker)
		if n := f.db.Int(f.t, "select count(*) from "+f.table("unrouted")+" where step = ''"); n != 1 {
			f.t.Errorf("%d rows without a step, want 1", n)
		}
		f.register(d)
		f.drain()
		f.wantResult(id, "1")
	})
}

// A state that this binary cannot decode: the instance waits, visibly and without
// losing an attempt, for a binary that can.
func TestAStateThatDoesNotDecodeWaitsForABinaryThatReadsIt(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		text := fsm.Define("typed", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
			return r.Done(r.State), nil
		}, nil))
		number := fsm.Define("typed", 1, nil, fsm.Step("only", done, nil))
		other := f.other(nil)
		other.register(text)
		f.register(number)
		started, err := fsm.Start(t.Context(), f.eng, text, "new form", nil)
		enginetest.NoError(t, err)
		for range 10 {
			f.drain()
			i := f.get(started.ID)
			if i.Status != fsm.Scheduled || i.Attempt != 1 || i.Failures != 0 || i.Crashes != 0 {
				t.Fatalf("the instance is %s with %d attempts, %d failures and %d crashes", i.Status, i.Attempt, i.Failures, i.Crashes)
			}
			if wait := i.Due.Sub(f.clock.Now()); wait < 15*time.Second || wait > 30*time.Second {
				t.Errorf("it waits for %v, want 15 to 30 s", wait)
			}
			if want := "decode state: "; len(i.Error) < len(want) || i.Error[:len(want)] != want {
				t.Errorf("its error is %q", i.Error)
			}
			f.clock.Advance(30 * time.Second)
		}
		other.clock.Advance(6 * time.Minute)
		other.drain()
		f.wantResult(started.ID, `"new form"`)
	})
}

// With an error handler, that decides: a replay keeps the stored state, every other
// outcome replaces it.
func TestTheErrorHandlerDecidesAboutAStateThatDoesNotDecode(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		text := fsm.Define("typed", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
			return r.Done(r.State), nil
		}, nil))
		number := fsm.Define("typed", 1, &with{OnError: func(_ context.Context, r run, err error) (fsm.Outcome, error) {
			if r.State != 0 || err == nil {
				t.Errorf("the handler has state %d and error %v", r.State, err)
			}
			if r.Attempt == 1 {
				return r.Replay(time.Second), nil
			}
			r.State = 7
			return r.Next("repair"), nil
		}}, fsm.Step("only", done, nil), fsm.Step("repair", done, nil))
		f.register(number)
		started, err := fsm.Start(t.Context(), f.eng, text, "new form", nil)
		enginetest.NoError(t, err)
		f.drain()
		if i := f.get(started.ID); string(i.State) != `"new form"` {
			t.Errorf("the replay stored %s", i.State)
		}
		f.after(time.Second)
		f.wantResult(started.ID, "7")
	})
}

// An older process that starts in the middle of a deploy does not set a schedule back.
func TestAScheduleIsNotSetBackToAnOlderVersion(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		one, two := fsm.Define("report", 1, nil, fsm.Step("only", done, nil)), fsm.Define("report", 2, nil, fsm.Step("only", done, nil))
		var kept []int
		set := func(d *fsm.Definition[int], o fsm.ScheduleOptions) {
			t.Helper()
			o.Kept = func(s fsm.ScheduleStatus) { kept = append(kept, s.Version) }
			enginetest.NoError(t, fsm.SetSchedule(t.Context(), f.eng, "nightly", "@every 1h", d, d.Version(), &o))
		}
		want := func(version, state int) {
			t.Helper()
			all, err := f.Schedules(t.Context())
			enginetest.NoError(t, err)
			if len(all) != 1 || all[0].Version != version || string(all[0].State) != string(rune('0'+state)) {
				t.Errorf("the schedules are %+v, want version %d", all, version)
			}
		}
		set(one, fsm.ScheduleOptions{})
		set(two, fsm.ScheduleOptions{})
		want(2, 2)
		set(one, fsm.ScheduleOptions{Paused: true})
		want(2, 2)
		if len(kept) != 1 || kept[0] != 2 {
			t.Errorf("kept were %v, want version 2 once", kept)
		}
		set(one, fsm.ScheduleOptions{Downgrade: true})
		want(1, 1)
		other := fsm.Define("other", 1, nil, fsm.Step("only", done, nil))
		set(two, fsm.ScheduleOptions{})
		enginetest.NoError(t, fsm.SetSchedule(t.Context(), f.eng, "nightly", "@every 1h", other, 3, nil))
		want(1, 3)
	})
}
