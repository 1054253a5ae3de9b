package fsm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/fsm"
)

func TestCase33OtherSignalsStayInTheInbox(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("choosy", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("a", "b").Then("look") }), nil),
			fsm.Step("look", func(_ context.Context, r run) (fsm.Outcome, error) {
				var names []string
				for _, s := range r.Awaited {
					names = append(names, s.Name)
				}
				for _, s := range r.All {
					names = append(names, "all "+s.Name)
				}
				return r.Done(names), nil
			}, nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.send(id, "c", nil)
		if n := f.drain(); n != 0 {
			t.Errorf("a signal that nobody waits for woke %d", n)
		}
		f.wantWait(id, fsm.ForSignal)
		f.wantRows("signals", 1)
		f.send(id, "b", nil)
		f.drain()
		f.wantResult(id, `["b","all c","all b"]`)
		f.wantRows("signals", 1) // that of c, which it never awaited, stays with it
	})
}

// accumulator collects three signals before it goes on.
func accumulator(name string, runs *counter) *fsm.Definition[[]string] {
	return fsm.Define(name, 1, nil,
		fsm.Step("park", func(_ context.Context, r *fsm.Run[[]string]) (fsm.Outcome, error) {
			return r.Await("part").Then("collect"), nil
		}, nil),
		fsm.Step("collect", func(_ context.Context, r *fsm.Run[[]string]) (fsm.Outcome, error) {
			runs.add()
			if len(r.Awaited) < 3 {
				return r.Await("part").Keep().Then("collect"), nil
			}
			var all []string
			for _, s := range r.Awaited {
				all = append(all, string(s.Payload))
			}
			return r.Done(all), nil
		}, nil),
	)
}

// Accumulating three signals takes three executions: what was kept wakes nobody,
// and neither does its duplicate.
func TestCase34AccumulatingDoesNotSpin(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var runs counter
		d := accumulator("collector", &runs)
		f.register(d)
		id := start(f, d, nil, nil)
		f.drain()
		for i := range 3 {
			key := &fsm.SignalOptions{Key: fmt.Sprint("key ", i)}
			for n := range 3 {
				got, err := fsm.Send(t.Context(), f.eng, id, "part", i, key)
				if i == 2 && n > 0 {
					refused(t, err, true)
					continue
				}
				if err != nil || got.Duplicate != (n > 0) {
					t.Errorf("part %d, time %d: %+v, %v", i, n, got, err)
				}
				f.drain()
			}
			runs.is(t, "executions", int64(i+1))
		}
		f.wantResult(id, `["0","1","2"]`)
		f.wantRows("signals", 0)
	})
}

// What was kept is given again although the names that are waited for have
// changed, and is consumed with the rest.
func TestKeptSignalsAreGivenWithTheNewOnes(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("two names", 1, nil,
			fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await("a").Then("first") }), nil),
			fsm.Step("first", always(func(r run) fsm.Outcome { return r.Await("b").Keep().Then("second") }), nil),
			fsm.Step("second", func(_ context.Context, r run) (fsm.Outcome, error) {
				r.State = len(r.Awaited)
				return r.Next("third"), nil
			}, nil),
			fsm.Step("third", always(func(r run) fsm.Outcome { return r.Done([]int{r.State, len(r.Awaited), len(r.All)}) }), nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.send(id, "a", nil)
		f.drain()
		f.wantWait(id, fsm.ForSignal)
		f.send(id, "b", nil)
		f.drain()
		f.wantResult(id, "[2,0,0]")
	})
}

// The list of what was kept does not grow by itself.
func TestKeepingManySignalsKeepsEachOnce(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("hoarder", 1, nil, fsm.Step("more", always(func(r run) fsm.Outcome { return r.Await("more").Keep().Then("more") }), nil))
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for range 20 {
			f.send(id, "more", nil)
			f.drain()
		}
		if n := len(f.db.Text(t, "select seen from "+f.table("instances"))); n > 200 {
			t.Errorf("the list of 20 signals is %d bytes long", n)
		}
	})
}

// An event loop handles each signal once.
func TestCase35AnEventLoopHandlesEachSignalOnce(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var handled []string
		d := fsm.Define("loop", 1, nil, fsm.Step("turn", func(_ context.Context, r run) (fsm.Outcome, error) {
			for _, s := range r.Awaited {
				handled = append(handled, string(s.Payload))
			}
			return r.Await("a").Then("turn"), nil
		}, nil))
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		for i := range 3 {
			f.send(id, "a", i)
			f.drain()
		}
		f.send(id, "a", 3)
		f.send(id, "a", 4)
		f.drain()
		if diff := cmp.Diff([]string{"0", "1", "2", "3", "4"}, handled); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
		f.wantWait(id, fsm.ForSignal)
		f.wantRows("signals", 0)
	})
}
