package flow_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/flow"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// eachChange runs a function until it sleeps, replaces its code, and runs it to its end.
func eachChange(t *testing.T, before, after func(f *fixture, run *flow.Run) (string, error), check func(f *fixture, id string, define func(fn func(f *fixture, run *flow.Run) (string, error)))) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), nil)
			code := before
			order := flow.Define("order", 1, func(run *flow.Run, _ int) (string, error) { return code(f, run) })
			f.register(order)
			id := start(f, order, 0)
			f.drain()
			f.is(id, fsm.Scheduled, "")
			code = after
			f.after(time.Hour)
			check(f, id, func(fn func(f *fixture, run *flow.Run) (string, error)) { code = fn })
		})
	}
}

// calls makes calls in order. A call that begins with "~" is a sleep of an hour.
func calls(names ...string) func(f *fixture, run *flow.Run) (string, error) {
	return func(f *fixture, run *flow.Run) (string, error) {
		for _, name := range names {
			var err error
			if sleep, ok := strings.CutPrefix(name, "~"); ok {
				err = flow.Sleep(run, sleep, time.Hour)
			} else {
				_, err = f.step(run, name)
			}
			if err != nil {
				return "", err
			}
		}
		return strings.Join(names, " "), nil
	}
}

func TestStepsAfterTheRecordedOnesMayChange(t *testing.T) {
	eachChange(t, calls("a", "b", "~pause", "c", "d"), calls("a", "b", "~pause", "x", "d", "c"), func(f *fixture, id string, _ func(func(*fixture, *flow.Run) (string, error))) {
		f.is(id, fsm.Done, "a b ~pause x d c")
		f.had("a", "b", "x", "d", "c")
	})
}

func TestOtherCodeDivergesAndContinuesAfterAFix(t *testing.T) {
	for name, after := range map[string]struct {
		code func(f *fixture, run *flow.Run) (string, error)
		diff string
	}{
		"inserted": {calls("a", "x", "b", "~pause", "c"), "call x#1 is not recorded, and was made where b#1 is recorded"},
		"removed":  {calls("a", "~pause", "c"), "call pause#1 was made where b#1 is recorded"},
		"swapped":  {calls("b", "a", "~pause", "c"), "call b#1 was made where a#1 is recorded"},
		"renamed":  {calls("a", "z", "~pause", "c"), "call z#1 is not recorded, and was made where b#1 is recorded"},
		"ended":    {calls("a"), "the function ended without the recorded calls b#1, pause#1"},
		"kind":     {calls("~a", "b", "~pause", "c"), "call a#1 is another kind of call than the recorded one"},
		"type": {func(f *fixture, run *flow.Run) (string, error) {
			_, err := flow.Step(run, "a", func(context.Context) (int, error) { return 1, nil })
			return "", err
		}, "decode result of a#1 into int"},
	} {
		t.Run(name, func(t *testing.T) {
			before := calls("a", "b", "~pause", "c")
			eachChange(t, before, after.code, func(f *fixture, id string, define func(func(*fixture, *flow.Run) (string, error))) {
				f.is(id, fsm.Waiting, flow.Diverged)
				f.is(id, fsm.Waiting, after.diff)
				f.after(100 * time.Hour) // it does not run again by itself
				f.had("a", "b")
				enginetest.NoError(f.t, flow.Continue(f.t.Context(), f.eng, id))
				f.drain()
				f.is(id, fsm.Waiting, after.diff)
				define(before)
				enginetest.NoError(f.t, flow.Continue(f.t.Context(), f.eng, id))
				f.drain()
				f.is(id, fsm.Done, "a b ~pause c")
				f.had("a", "b", "c")
			})
		})
	}
}

func TestVersionSeparatesOldAndNewInstances(t *testing.T) {
	var asked []bool
	code := func(f *fixture, run *flow.Run) (string, error) {
		if _, err := f.step(run, "a"); err != nil {
			return "", err
		}
		if flow.Version(run, "passed") {
			return "", flow.Stop("the old instance has passed this place")
		}
		if err := flow.Sleep(run, "pause", time.Hour); err != nil {
			return "", err
		}
		if !flow.Version(run, "new") {
			return "", flow.Stop("this place is new for all instances")
		}
		asked = append(asked, true)
		return "changed", flow.Sleep(run, "more", time.Hour)
	}
	_ = asked
	eachChange(t, calls("a", "~pause", "c"), code, func(f *fixture, id string, _ func(func(*fixture, *flow.Run) (string, error))) {
		f.after(time.Hour)
		f.is(id, fsm.Done, "changed")
	})
}

func TestContinuingVersionMatchesByName(t *testing.T) {
	each(t, func(f *fixture) {
		one := flow.Define("order", 1, func(run *flow.Run, _ int) (string, error) { return calls("a", "b", "~pause", "c")(f, run) })
		two := flow.Define("order", 2, func(run *flow.Run, _ int) (string, error) { return calls("b", "x", "~pause", "d")(f, run) }).Continues(1)
		f.register(one)
		id := start(f, one, 0)
		f.drain()
		o := f.other(nil)
		o.register(two)
		o.clock.Advance(time.Hour)
		o.drain()
		o.is(id, fsm.Done, "b x ~pause d")
		f.had("a", "b", "x", "d")
	})
}
