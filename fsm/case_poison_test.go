package fsm_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A step that takes its process down is quarantined after it has done so five
// times, from the third time on alone; its neighbours in lost batches are not
// blamed and go on.
func TestCase19APoisonStepIsQuarantined(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		dead := newGate(t)
		var alive atomic.Bool
		d := machine("poison", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.State == 3 || !alive.Load() {
				dead.pass(r.ID) // as if the process were gone
			}
			return r.Done(nil), nil
		})
		started, err := fsm.StartMany(t.Context(), f.eng, d, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, nil)
		enginetest.NoError(t, err)
		var crashes []perdure.Crash
		var mu sync.Mutex
		var waits []func()
		for life := range 6 {
			var lost counter
			options := quiet(&lost)
			options.OnCrash = func(c perdure.Crash) {
				mu.Lock()
				defer mu.Unlock()
				crashes = append(crashes, c)
			}
			f.clock.Advance(2 * minute)
			process := f.other(options)
			process.register(d)
			if life == 5 {
				process.drain()
				break
			}
			waits = append(waits, process.arrives(dead))
			if life == 0 {
				for range 9 {
					dead.await(t)
				}
				alive.Store(true)
				continue
			}
			for i, healthy := range started { // they do not crash with the poison again
				enginetest.Eventually(t, "the others end", func() bool { return i == 3 || f.get(healthy.ID).Status == fsm.Done })
			}
		}
		for i, s := range started {
			if i == 3 {
				f.wantStatus(s.ID, fsm.Quarantined)
				continue
			}
			f.wantStatus(s.ID, fsm.Done)
		}
		mu.Lock()
		if last := crashes[len(crashes)-1]; !last.Quarantined || last.Crashes != 5 || last.ID != started[3].ID {
			t.Errorf("OnCrash was last told %+v", last)
		}
		mu.Unlock()
		dead.release()
		for _, wait := range waits {
			wait()
		}
		f.wantStatus(started[3].ID, fsm.Quarantined)
		dead2, _, err := f.List(t.Context(), fsm.Filter{Finished: []fsm.Status{fsm.Quarantined}}, "", 0)
		if err != nil || len(dead2) != 1 {
			t.Errorf("dead letters: %v, %v", dead2, err)
		}
		if err := f.Retry(t.Context(), started[3].ID); err != nil {
			t.Error(err)
		}
		if got := f.get(started[3].ID); got.Status != fsm.Ready || got.Crashes != 0 {
			t.Errorf("after the retry it is %s with %d crashes", got.Status, got.Crashes)
		}
	})
}

// Progress forgives crashes: only those of one step count against it.
func TestProgressForgivesCrashes(t *testing.T) {
	eachWith(t, fsm.Options{MaxCrashes: 2}, func(f *fixture) {
		t := f.t
		dead := newGate(t)
		var runs tally
		d := fsm.Define("unlucky", 1, nil, fsm.Step("again", func(_ context.Context, r run) (fsm.Outcome, error) {
			if runs.add(fmt.Sprint(r.State)) == 1 {
				dead.pass(r.ID)
			}
			if r.State++; r.State == 5 {
				return r.Done(r.Crashes), nil
			}
			return r.Next("again"), nil
		}, nil))
		id := start(f, d, 0, nil)
		var waits []func()
		for range 5 {
			var lost counter
			options := quiet(&lost)
			options.MaxCrashes = 2
			process := f.other(options)
			process.register(d)
			waits = append(waits, process.begin())
			dead.await(t)
			f.clock.Advance(minute)
		}
		f.register(d)
		f.drain()
		f.wantResult(id, "1")
		dead.release()
		for _, wait := range waits {
			wait()
		}
	})
}
