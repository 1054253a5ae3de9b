package fsm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// parentOf is a machine that spawns what children returns and ends with what join
// makes of them.
func parentOf(name string, spawn func(r run) fsm.Outcome, join func(r run, children []fsm.Child) any) *fsm.Definition[int] {
	return fsm.Define(name, 1, nil,
		fsm.Step("fan", always(func(r run) fsm.Outcome { return spawn(r).Then("join") }), nil),
		fsm.Step("join", func(ctx context.Context, r run) (fsm.Outcome, error) {
			children, err := r.Children(ctx)
			if err != nil {
				return fsm.Outcome{}, err
			}
			return r.Done(join(r, children)), nil
		}, nil),
	)
}

// story tells of children in their order.
func story(_ run, children []fsm.Child) any {
	var lines []string
	for _, c := range children {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s%s", c.Ordinal, c.Status, c.Result, c.Error)))
	}
	return strings.Join(lines, ", ")
}

func leaves(states ...int) []fsm.ChildSpec {
	var specs []fsm.ChildSpec
	for _, s := range states {
		specs = append(specs, fsm.ChildOf(leaf, s, nil))
	}
	return specs
}

// A fan-out of 1,000 joins once, with all results in the order of the spawn.
func TestCase43AThousandChildrenJoinOnce(t *testing.T) {
	each(t, func(f *fixture) {
		var joins counter
		const n = 1000
		d := parentOf("wide", func(r run) fsm.Outcome {
			var specs []fsm.ChildSpec
			for i := range n {
				specs = append(specs, fsm.ChildOf(leaf, i+10, nil))
			}
			return r.Spawn(specs...)
		}, func(_ run, children []fsm.Child) any {
			joins.add()
			for i, c := range children {
				if c.Ordinal != i || c.Status != fsm.Done || string(c.Result) != fmt.Sprint((i+10)*10) {
					return fmt.Sprintf("child %d is %+v", i, c)
				}
			}
			return len(children)
		})
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantResult(id, "1000")
		joins.is(f.t, "joins", 1)
	})
}

// No children, only children whose key is taken, and one that fails: the parent
// goes on and sees why.
func TestCase44TheParentSeesWhatBecameOfItsChildren(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		taken := start(f, leaf, 1, &fsm.StartOptions{Unique: "taken", Delay: time.Hour})
		told := func(r run, children []fsm.Child) any {
			return fmt.Sprintf("%v; dropped %v", story(r, children), r.Dropped)
		}
		none := parentOf("none", func(r run) fsm.Outcome { return r.Spawn() }, told)
		dropped := parentOf("dropped", func(r run) fsm.Outcome {
			key := &fsm.StartOptions{Unique: "taken"}
			return r.Spawn(fsm.ChildOf(leaf, 1, key), fsm.ChildOf(leaf, 1, key))
		}, told)
		failing := parentOf("failing", func(r run) fsm.Outcome { return r.Spawn(leaves(1, 2, 3)...) }, told)
		f.register(none, dropped, failing, leaf)
		a, b, c := start(f, none, 0, nil), start(f, dropped, 0, nil), start(f, failing, 0, nil)
		f.drain()
		f.wantResult(a, `"; dropped []"`)
		f.wantResult(b, fmt.Sprintf(`"; dropped [{0 %s} {1 %s}]"`, taken, taken))
		f.wantResult(c, `"0 done 10, 1 stopped two, 2 done 30; dropped []"`)
		if err := f.Cancel(t.Context(), taken, "over"); err != nil {
			t.Error(err)
		}
	})
}

// The worker of a child dies between its result and its commit: the barrier is
// counted down once.
func TestCase45AChildIsCountedOnce(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var lost counter
		dead := newGate(t)
		child := machine("child", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.State == 1 && r.Crashes == 0 {
				dead.pass(r.ID)
			}
			return r.Done(r.State), nil
		})
		d := parentOf("parent", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, &fsm.StartOptions{Delay: time.Hour}))
		}, story)
		process := f.other(quiet(&lost))
		process.register(d, child)
		f.register(d, child)
		id := start(f, d, 0, nil)
		wait := process.begin()
		dead.await(t)
		f.after(minute)
		f.wantWait(id, fsm.ForChildren)
		dead.release()
		wait()
		lost.is(t, "ends that came too late", 1)
		f.drain()
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantResult(id, `"0 done 1, 1 done 2"`)
	})
}

// The second of two fan-outs sees only its own children, also while one of the
// first is still running.
func TestCase46FanOutsAreApart(t *testing.T) {
	each(t, func(f *fixture) {
		var seen []any
		next := func(step string, spawn func(r run) fsm.Outcome) func(context.Context, run) (fsm.Outcome, error) {
			return func(ctx context.Context, r run) (fsm.Outcome, error) {
				children, err := r.Children(ctx)
				seen = append(seen, story(r, children))
				return spawn(r).Then(step), err
			}
		}
		d := fsm.Define("twice", 1, nil,
			fsm.Step("one", next("two", func(r run) fsm.Outcome {
				slow := fsm.ChildOf(leaf, 9, &fsm.StartOptions{Delay: time.Hour})
				return r.Spawn(append(leaves(1, 2), slow)...).Need(2)
			}), nil),
			fsm.Step("two", next("three", func(r run) fsm.Outcome {
				return r.Spawn(fsm.ChildOf(leaf, 4, &fsm.StartOptions{Delay: 2 * time.Hour}))
			}), nil),
			fsm.Step("three", next("", func(r run) fsm.Outcome { return r.Done(nil) }), nil),
		)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		f.drain()
		f.after(time.Hour) // the slow one of the first round ends: it is not counted for the second
		f.wantWait(id, fsm.ForChildren)
		f.after(time.Hour)
		f.wantStatus(id, fsm.Done)
		want := []any{"", "0 done 10, 1 stopped two, 2 running", "0 done 40"}
		if diff := cmp.Diff(want, seen); diff != "" {
			f.t.Errorf("children (-want +got):\n%s", diff)
		}
	})
}

// Children end while their parent's fan-out is being committed: it is not released
// early. 100 rounds, times PERDURE_SOAK.
func TestCase47AChildCannotOvertakeItsParent(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parentOf("quick", func(r run) fsm.Outcome { return r.Spawn(leaves(1, 3, 4)...) }, story)
		f.register(d, leaf)
		other := f.beside(f.clock, nil)
		other.register(d, leaf)
		for range rounds(10) {
			started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 10), nil)
			enginetest.NoError(t, err)
			race(func() { f.drain() }, func() { other.drain() })
			f.drain()
			for _, s := range started {
				f.wantResult(s.ID, `"0 done 10, 1 done 30, 2 done 40"`)
			}
		}
	})
}

// Three levels of ten, which end in the same flushes: every join happens once.
func TestCase48NestedFanOuts(t *testing.T) {
	each(t, func(f *fixture) {
		var joins counter
		var level func(n int) *fsm.Definition[int]
		var all []fsm.Definer
		level = func(n int) *fsm.Definition[int] {
			child := leaf
			if n > 1 {
				child = level(n - 1)
			}
			d := parentOf(fmt.Sprint("level ", n), func(r run) fsm.Outcome {
				var specs []fsm.ChildSpec
				for range 10 {
					specs = append(specs, fsm.ChildOf(child, 1, nil))
				}
				return r.Spawn(specs...)
			}, func(_ run, children []fsm.Child) any { joins.add(); return len(children) })
			all = append(all, d)
			return d
		}
		top := level(3)
		f.register(append(all, leaf)...)
		id := start(f, top, 0, nil)
		f.drain()
		f.wantResult(id, "10")
		joins.is(f.t, "joins", 111)
		f.wantRows("instances", 1111)
	})
}

// Retention does not take children away from a parent that has not ended.
func TestCase49RetentionSparesTheChildrenOfLiveParents(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := parentOf("patient", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(leaf, 1, nil), fsm.ChildOf(leaf, 3, &fsm.StartOptions{Delay: time.Hour}))
		}, story)
		f.register(d, leaf)
		id := start(f, d, 0, nil)
		alone := start(f, leaf, 1, nil)
		f.drain()
		f.clock.Advance(time.Minute)
		if n, err := f.Purge(t.Context(), 0); err != nil || n != 1 {
			t.Errorf("%d were purged, want 1: %v", n, err)
		}
		if _, err := f.Get(t.Context(), alone); err == nil {
			t.Error("it was not the one that is alone")
		}
		f.after(time.Hour)
		f.wantResult(id, `"0 done 10, 1 done 30"`)
		if n, err := f.Purge(t.Context(), 0); err != nil || n != 3 {
			t.Errorf("%d were purged, want 3: %v", n, err)
		}
		f.wantRows("instances", 0)
		f.wantRows("finished", 0)
		f.register(stopping)
		failed := start(f, stopping, 2, nil)
		f.drain()
		f.clock.Advance(time.Hour)
		if n, err := f.Purge(t.Context(), 0); err != nil || n != 0 {
			t.Errorf("%d failed ones were purged: %v", n, err)
		}
		f.wantStatus(failed, fsm.Failed)
	})
}
