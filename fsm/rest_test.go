package fsm_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// rest is a machine that spawns one child that ends, and two that do not become due,
// and then goes through the steps "join" and "after".
func rest(name string, spawn, join func(o fsm.Outcome) fsm.Outcome) *fsm.Definition[int] {
	return fsm.Define(name, 1, nil,
		fsm.Step("fan", always(func(r run) fsm.Outcome {
			return spawn(r.Spawn(fsm.ChildOf(leaf, 1, nil), fsm.ChildOf(leaf, 1, late), fsm.ChildOf(leaf, 1, late)).Then("join"))
		}), nil),
		fsm.Step("join", always(func(r run) fsm.Outcome { return join(r.Await("go").Then("after")) }), nil),
		fsm.Step("after", always(func(r run) fsm.Outcome { return r.Done(nil) }), nil),
	)
}

// The children that are left after k of n, or after the time limit of a join, are
// cancelled: as the spawn decided, or as the step after it decides. The parent
// continues, and children of others are left alone.
func TestTheRestOfAFanOutIsCancelled(t *testing.T) {
	t.Parallel()
	same := func(o fsm.Outcome) fsm.Outcome { return o }
	for name, c := range map[string]struct {
		spawn, join func(o fsm.Outcome) fsm.Outcome
	}{
		"spawn, k of n":       {func(o fsm.Outcome) fsm.Outcome { return o.Need(1).CancelRest() }, same},
		"spawn, time limit":   {func(o fsm.Outcome) fsm.Outcome { return o.Within(time.Minute).CancelRest() }, same},
		"outcome, k of n":     {func(o fsm.Outcome) fsm.Outcome { return o.Need(1) }, fsm.Outcome.CancelRest},
		"outcome, time limit": {func(o fsm.Outcome) fsm.Outcome { return o.Within(time.Minute) }, fsm.Outcome.CancelRest},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(f *fixture) {
				t := f.t
				d := rest("rest", c.spawn, c.join)
				other := wide("other", 2)
				f.register(d, other, leaf)
				id, spared := start(f, d, 0, nil), start(f, other, 0, nil)
				f.drain()
				f.after(time.Minute)
				f.wantWait(id, fsm.ForSignal)
				children, _, err := f.List(t.Context(), fsm.Filter{Parent: id}, "", 0)
				enginetest.NoError(t, err)
				ends := map[fsm.Status]int{}
				for _, c := range children {
					ends[c.Status]++
				}
				if ends[fsm.Cancelled] != 2 || ends[fsm.Done] != 1 {
					t.Errorf("children are %v, want 2 cancelled and 1 done", ends)
				}
				f.wantWait(spared, fsm.ForChildren)
				f.wantRows("tree_ends", 0)
				f.send(id, "go", nil)
				f.drain()
				f.wantStatus(id, fsm.Done)
			})
		})
	}
}

// Without CancelRest the rest runs on.
func TestTheRestOfAFanOutRunsOn(t *testing.T) {
	each(t, func(f *fixture) {
		d := rest("rest", func(o fsm.Outcome) fsm.Outcome { return o.Need(1) }, func(o fsm.Outcome) fsm.Outcome { return o })
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		live, _, err := f.List(f.t.Context(), fsm.Filter{Parent: id, Live: true}, "", 0)
		if err != nil || len(live) != 2 {
			f.t.Errorf("%d children live, want 2: %v", len(live), err)
		}
	})
}
