package fsm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/limit"
)

// inLane runs a test with an instance that was moved to a lane of its queue, because its name
// had no room in another process.
func inLane(t *testing.T, d *fsm.Definition[int], test func(f *fixture, id string)) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), nil)
			id := start(f, d, 1, nil)
			for _, table := range []string{"instances", "ready"} {
				f.db.Exec(t, "update "+f.table(table)+" set queue = 'default\x1f~fsm:other'")
			}
			test(f, id)
		})
	}
}

func TestAnInstanceInALaneRuns(t *testing.T) {
	d := machine("order", done)
	inLane(t, d, func(f *fixture, id string) {
		f.register(d)
		if at, err := f.NextWakeAt(f.t.Context()); err != nil || at.After(f.clock.Now()) || at.IsZero() {
			f.t.Errorf("the next wake is %v, %v", at, err)
		}
		f.drain()
		f.wantResult(id, "1")
		f.wantRows("ready", 0)
		f.wantRows("leases", 0)
	})
}

func TestALaneIsNotShown(t *testing.T) {
	d := machine("order", done)
	inLane(t, d, func(f *fixture, id string) {
		found, _, err := f.List(f.t.Context(), fsm.Filter{Queue: fsm.DefaultQueue}, "", 10)
		enginetest.NoError(f.t, err)
		if len(found) != 1 || found[0].ID != id || found[0].Queue != fsm.DefaultQueue || found[0].Status != fsm.Ready {
			f.t.Errorf("found %+v", found)
		}
		for _, queue := range []string{"defaul", "default2", "other"} {
			if found, _, err := f.List(f.t.Context(), fsm.Filter{Queue: queue}, "", 10); err != nil || len(found) != 0 {
				f.t.Errorf("queue %s: %+v, %v", queue, found, err)
			}
		}
	})
}

func TestAPauseOfAQueueHoldsItsLanes(t *testing.T) {
	d := machine("order", done)
	inLane(t, d, func(f *fixture, id string) {
		f.register(d)
		enginetest.NoError(f.t, limit.Pause(f.t.Context(), f.eng, "queue:default", nil))
		f.drain()
		f.wantStatus(id, fsm.Ready)
		if at, err := f.NextWakeAt(f.t.Context()); err != nil || !at.IsZero() && !at.After(f.clock.Now()) {
			f.t.Errorf("the next wake of a paused queue is %v, %v", at, err)
		}
		enginetest.NoError(f.t, limit.Resume(f.t.Context(), f.eng, "queue:default"))
		f.drain()
		f.wantResult(id, "1")
	})
}

func TestAnInstanceInALaneIsCancelled(t *testing.T) {
	d := machine("order", done)
	inLane(t, d, func(f *fixture, id string) {
		f.register(d)
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), id, "no longer needed"))
		f.wantStatus(id, fsm.Cancelled)
		f.wantRows("ready", 0)
	})
}

// An instance whose definition the process does not know is parked with its queue, from which a
// process that knows it takes it.
func TestAnInstanceInALaneIsParkedWithItsQueue(t *testing.T) {
	d := machine("order", done)
	inLane(t, d, func(f *fixture, id string) {
		f.drain()
		f.wantStatus(id, fsm.NoWorker)
		f.register(d)
		f.drain()
		f.wantResult(id, "1")
	})
}

// The instances of a crashed process return to their queue, where suspects are looked for.
func TestAnInstanceInALaneSurvivesCrashes(t *testing.T) {
	d := machine("order", done)
	inLane(t, d, func(f *fixture, id string) {
		hang := make(chan struct{})
		defer close(hang)
		hangs := machine("order", func(context.Context, run) (fsm.Outcome, error) { <-hang; return fsm.Outcome{}, context.Canceled })
		for range 2 {
			crashed := f.other(quiet(new(counter)))
			crashed.register(hangs)
			_, err := crashed.Start(f.t.Context())
			enginetest.NoError(f.t, err)
			f.wantStatus(id, fsm.Running)
			f.clock.Advance(time.Hour)
		}
		f.register(d)
		f.drain() // returns the claim of a suspect
		f.after(time.Hour)
		f.wantResult(id, "1")
	})
}

func TestABadSystemIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.SQLite), nil)
	for _, system := range []string{"a\x1fb", "a\nb", strings.Repeat("a", 10<<20), "\xff"} {
		d := fsm.Define("bad", 1, nil, fsm.Step("only", done, &fsm.StepOptions{System: system}))
		enginetest.As[*fault.Invalid](t, f.Register(d))
	}
}
