package fsm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// stopping stops if the state is 1, and fails otherwise.
var stopping = fsm.Define("stopping", 1, &with{Retry: once, KeepHistory: true}, fsm.Step("only", func(_ context.Context, r run) (fsm.Outcome, error) {
	if r.State == 1 {
		return r.Stop("declined"), nil
	}
	return fsm.Outcome{}, errors.New("broken")
}, nil))

func TestStopIsAnIntendedEnd(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(stopping)
		id := start(f, stopping, 1, nil)
		f.drain()
		if i := f.get(id); i.Status != fsm.Stopped || i.Error != "declined" || !i.Status.Finished() {
			t.Fatalf("it is %s: %q", i.Status, i.Error)
		}
		attempts, err := f.Attempts(t.Context(), id)
		enginetest.NoError(t, err)
		if len(attempts) != 1 || attempts[0].Outcome != "succeeded" {
			t.Errorf("the attempts are %+v", attempts)
		}
		if all, _, err := f.List(t.Context(), fsm.Filter{Finished: []fsm.Status{fsm.Failed, fsm.Quarantined}}, "", 0); err != nil || len(all) != 0 {
			t.Errorf("%d dead letters, %v", len(all), err)
		}
		enginetest.NoError(t, f.Retry(t.Context(), id))
		f.drain()
		f.wantStatus(id, fsm.Stopped)
		f.clock.Advance(time.Hour)
		if n, err := f.Purge(t.Context(), time.Minute); err != nil || n != 1 {
			t.Errorf("purged %d, %v", n, err)
		}
		f.wantNothingLeft()
	})
}

func TestAStoppedInstanceKeepsTheKeyThatAFailedOneKeeps(t *testing.T) {
	each(t, func(f *fixture) {
		f.register(stopping)
		for scope, keeps := range map[fsm.Scope]bool{fsm.Live: false, fsm.LiveOrDone: false, fsm.LiveOrFailed: true, fsm.Always: true} {
			options := &fsm.StartOptions{Unique: "k" + string(rune('0'+scope)), UniqueScope: scope}
			start(f, stopping, 1, options)
			f.drain()
			again, err := fsm.Start(f.t.Context(), f.eng, stopping, 1, options)
			enginetest.NoError(f.t, err)
			if again.Duplicate != keeps {
				f.t.Errorf("scope %d: a second start is a duplicate: %v", scope, again.Duplicate)
			}
		}
		f.drain()
	})
}

func TestDeadLettersAreRemovedAfterTheirOwnRetention(t *testing.T) {
	eachWith(t, fsm.Options{Retention: time.Hour, DeadRetention: 48 * time.Hour}, func(f *fixture) {
		t := f.t
		f.register(stopping, leaf)
		dead := start(f, stopping, 2, nil)
		f.drain()
		f.wantStatus(dead, fsm.Failed)
		f.clock.Advance(24 * time.Hour)
		start(f, leaf, 1, nil) // a sweep follows work
		f.drain()
		f.wantStatus(dead, fsm.Failed)
		if n, err := f.Purge(t.Context(), 0); err != nil || n != 1 {
			t.Errorf("purged %d, %v", n, err)
		}
		f.wantStatus(dead, fsm.Failed)
		f.clock.Advance(25 * time.Hour)
		start(f, leaf, 1, nil)
		f.drain()
		enginetest.Eventually(t, "the dead letter is removed", func() bool {
			_, err := f.Get(t.Context(), dead)
			var missing *fault.NotFound
			return errors.As(err, &missing)
		})
	})
}

func TestPurgeDeadRemovesAllThatBelongsToAnInstance(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(stopping)
		for range 3 {
			start(f, stopping, 2, nil)
		}
		f.drain()
		f.clock.Advance(time.Hour)
		if n, err := f.PurgeDead(t.Context(), 2*time.Hour); err != nil || n != 0 {
			t.Errorf("purged %d that are too young, %v", n, err)
		}
		if n, err := f.PurgeDead(t.Context(), time.Minute); err != nil || n != 3 {
			t.Errorf("purged %d, %v", n, err)
		}
		f.wantNothingLeft()
		enginetest.As[*fault.Invalid](t, second(f.PurgeDead(t.Context(), -1)))
	})
}

func TestDeleteRemovesOneInstanceThatHasEnded(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		waiting := parker("waiting", "go")
		f.register(stopping, waiting)
		dead, other := start(f, stopping, 2, &fsm.StartOptions{Unique: "k", UniqueScope: fsm.Always}), start(f, stopping, 2, nil)
		live := start(f, waiting, 0, nil)
		f.drain()
		enginetest.NoError(t, f.Delete(t.Context(), dead))
		enginetest.As[*fault.NotFound](t, f.Delete(t.Context(), dead))
		enginetest.As[*fault.NotFound](t, f.Delete(t.Context(), "x"))
		refused(t, f.Delete(t.Context(), live), false)
		f.wantStatus(other, fsm.Failed)
		f.wantWait(live, fsm.ForSignal)
		again, err := fsm.Start(t.Context(), f.eng, stopping, 1, &fsm.StartOptions{Unique: "k", UniqueScope: fsm.Always})
		enginetest.NoError(t, err)
		if again.Duplicate {
			t.Error("its key is still occupied")
		}
		f.drain()
		enginetest.NoError(t, f.Cancel(t.Context(), live, "enough"))
		for _, id := range []string{other, live, again.ID} {
			enginetest.NoError(t, f.Delete(t.Context(), id))
		}
		f.wantNothingLeft()
	})
}

func TestDeleteKeepsTheChildrenOfAParentThatHasNotEnded(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parentOf("patient", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(leaf, 1, nil), fsm.ChildOf(leaf, 3, &fsm.StartOptions{Delay: time.Hour}))
		}, story)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: id, Finished: []fsm.Status{fsm.Done}}, "", 0)
		enginetest.NoError(t, err)
		if len(children) != 1 {
			t.Fatalf("%d children are done", len(children))
		}
		if needed := refused(t, f.Delete(t.Context(), children[0].ID), false); needed.ID != id {
			t.Errorf("it is needed by %q, want %q", needed.ID, id)
		}
		f.after(time.Hour)
		f.wantResult(id, `"0 done 10, 1 done 30"`)
		enginetest.NoError(t, f.Delete(t.Context(), children[0].ID))
	})
}

// wantNothingLeft fails unless nothing is left of any instance.
func (f *fixture) wantNothingLeft() {
	f.t.Helper()
	for _, table := range []string{"instances", "finished", "transitions", "attempts", "uniques", "signals", "signal_keys"} {
		f.wantRows(table, 0)
	}
}

func second[A any](_ A, err error) error { return err }
