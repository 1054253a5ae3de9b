package fsm_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A parent is cancelled while its children are queued, parked, scheduled, running
// and done: all end once, none runs again.
func TestCase50CancelReachesEveryChild(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		running := newGate(t)
		slow := machine("running", func(_ context.Context, r run) (fsm.Outcome, error) { running.pass(r.ID); return r.Next("only"), nil })
		parked := parker("parked", "go")
		grand := parentOf("grand", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(parked, 0, nil)) }, story)
		d := parentOf("parent", func(r run) fsm.Outcome {
			in := &fsm.StartOptions{Partition: "p"}
			return r.Spawn(
				fsm.ChildOf(slow, 0, nil), fsm.ChildOf(parked, 0, nil), fsm.ChildOf(leaf, 1, nil), fsm.ChildOf(grand, 0, nil),
				fsm.ChildOf(leaf, 1, &fsm.StartOptions{Delay: time.Hour, Unique: "u", Deadline: 2 * time.Hour}),
				fsm.ChildOf(parked, 0, in), fsm.ChildOf(parked, 0, in), fsm.ChildOf(machine("unknown", done), 0, nil),
			)
		}, story)
		f.register(slow, parked, grand, d, leaf)
		id := start(f, d, 0, nil)
		wait := f.begin()
		running.await(t)
		enginetest.Eventually(t, "the others have arrived", func() bool {
			_, err := f.Start(t.Context())
			enginetest.NoError(t, err)
			return f.db.Rows(t, "perdure", "waiting") == 3 && f.db.Rows(t, "perdure", "unrouted") == 1
		})
		enginetest.NoError(t, f.Cancel(t.Context(), id, "changed our mind"))
		running.release()
		wait()
		f.after(3 * time.Hour)
		f.wantStatus(id, fsm.Cancelled)
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: id}, "", 0)
		enginetest.NoError(t, err)
		counts := map[fsm.Status]int{}
		for _, c := range children {
			counts[c.Status]++
		}
		if diff := cmp.Diff(map[fsm.Status]int{fsm.Cancelled: 7, fsm.Done: 1}, counts); diff != "" {
			t.Errorf("children (-want +got):\n%s", diff)
		}
		for _, table := range []string{"ready", "waiting", "barriers", "unrouted", "partition_heads", "partition_waiting", "uniques", "deadlines", "interrupts", "leases"} {
			f.wantRows(table, 0)
		}
		err = f.Cancel(t.Context(), id, "again")
		refused(t, err, true)
	})
}

// A child that is cancelled releases its parent.
func TestACancelledChildIsCounted(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parentOf("parent", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(leaf, 1, &fsm.StartOptions{Delay: time.Hour})) }, story)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: id}, "", 0)
		if err != nil || len(children) != 1 {
			t.Fatal(children, err)
		}
		enginetest.NoError(t, f.Cancel(t.Context(), children[0].ID, "not this one"))
		f.drain()
		f.wantResult(id, `"0 cancelled not this one"`)
	})
}

// k of n: the parent goes on with k, the others run on and count for nothing; a
// deadline lets it go on with what there is.
func TestCase51EnoughChildren(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var joins counter
		join := func(r run, children []fsm.Child) any {
			joins.add()
			return fmt.Sprint(story(r, children), " ", r.TimedOut)
		}
		delayed := func(state int, delay time.Duration) fsm.ChildSpec {
			return fsm.ChildOf(leaf, state, &fsm.StartOptions{Delay: delay})
		}
		some := parentOf("some", func(r run) fsm.Outcome {
			return r.Spawn(delayed(1, time.Hour), delayed(3, 2*time.Hour), delayed(2, 3*time.Hour), delayed(4, 4*time.Hour)).Need(2)
		}, join)
		late := parentOf("late", func(r run) fsm.Outcome {
			return r.Spawn(delayed(1, time.Hour), delayed(3, 20*time.Hour)).Within(90 * time.Minute)
		}, join)
		f.register(some, late, leaf)
		id := start(f, some, 0, nil)
		f.drain()
		f.after(time.Hour)
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantResult(id, `"0 done 10, 1 done 30, 2 running, 3 running false"`)
		f.after(2 * time.Hour)
		joins.is(t, "joins", 1)
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: id, Live: true}, "", 0)
		if err != nil || len(children) != 0 {
			t.Errorf("children that have not ended: %v, %v", children, err)
		}
		id = start(f, late, 0, nil)
		f.drain()
		f.after(time.Hour)
		f.after(29 * time.Minute)
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Minute)
		f.wantResult(id, `"0 done 10, 1 running true"`)
		f.after(20 * time.Hour)
		joins.is(t, "joins", 2)
	})
}

// Need counts children that were started: those whose key was taken cannot end.
func TestNeedCountsWhatWasStarted(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		taken := start(f, leaf, 1, &fsm.StartOptions{Unique: "taken", Delay: 24 * time.Hour})
		key := &fsm.StartOptions{Unique: "taken"}
		delayed := func(d time.Duration) fsm.ChildSpec { return fsm.ChildOf(leaf, 1, &fsm.StartOptions{Delay: d}) }
		d := parentOf("need", func(r run) fsm.Outcome {
			dropped := fsm.ChildOf(leaf, 1, key)
			return r.Spawn(dropped, delayed(time.Hour), dropped, delayed(2*time.Hour), delayed(3*time.Hour)).Need(2)
		}, story)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantStatus(id, fsm.Done)
		enginetest.NoError(t, f.Cancel(t.Context(), taken, "over"))
	})
}

// A child that failed is retried while its parent waits for others: the parent
// still sees it, and does not count it twice.
func TestARetriedChildIsSeenAndCountedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		broken := true
		child := machine("child", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.State == 1 && broken {
				return r.Stop("broken"), nil
			}
			return r.Done(r.State), nil
		})
		d := parentOf("parent", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, &fsm.StartOptions{Delay: time.Hour}))
		}, story)
		f.register(d, child)
		id := start(f, d, 0, nil)
		f.drain()
		failed, _, err := f.List(t.Context(), fsm.Filter{Parent: id, Finished: []fsm.Status{fsm.Stopped}}, "", 0)
		if err != nil || len(failed) != 1 {
			t.Fatal(failed, err)
		}
		broken = false
		for range 2 { // once is enough, and twice is an error
			err = f.Retry(t.Context(), failed[0].ID)
		}
		refused(t, err, false)
		f.drain()
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantResult(id, `"0 done 1, 1 done 2"`)
	})
}
