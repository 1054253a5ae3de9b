package fsm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/perduretest"
)

// TestMain is also the main function of the children of TestKilledProcesses….
func TestMain(m *testing.M) {
	torture.Main(roles)
	testdb.Main(m)
}

// fixture is an engine with its machines and a clock that stands still.
type fixture struct {
	*fsm.Machines
	t     *testing.T
	db    enginetest.Database
	eng   *perdure.Engine
	clock *perduretest.Clock
}

// each runs a test on every database that carries state machines.
func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, enginetest.New(t, name), nil))
		})
	}
}

func newFixture(t *testing.T, db enginetest.Database, options *fsm.Options) *fixture {
	t.Helper()
	clock := perduretest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	eng, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	machines, err := fsm.New(eng, options)
	if err != nil {
		t.Fatal(err)
	}
	stopped(t, machines)
	f := &fixture{Machines: machines, t: t, db: db, eng: eng, clock: clock}
	t.Cleanup(func() { sound(t, eng) })
	return f
}

func (f *fixture) register(definitions ...fsm.Definer) {
	f.t.Helper()
	if err := f.Register(definitions...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) drain() int {
	f.t.Helper()
	return perduretest.Drain(f.t, f)
}

// after moves the clock and runs what has become due.
func (f *fixture) after(d time.Duration) int {
	f.t.Helper()
	f.clock.Advance(d)
	return f.drain()
}

func (f *fixture) get(id string) fsm.Instance {
	f.t.Helper()
	instance, err := f.Get(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return instance
}

func (f *fixture) wantStatus(id string, want fsm.Status) {
	f.t.Helper()
	if got := f.get(id); got.Status != want {
		f.t.Errorf("instance is %s (%s), want %s", got.Status, got.Error, want)
	}
}

// wantWait checks what an instance waits for.
func (f *fixture) wantWait(id string, want fsm.Reason) {
	f.t.Helper()
	if got := f.get(id); got.Status != fsm.Waiting || got.WaitsFor != want {
		f.t.Errorf("instance is %s %s (%s), want waiting %s", got.Status, got.WaitsFor, got.Error, want)
	}
}

func (f *fixture) send(id, name string, payload any) {
	f.t.Helper()
	if _, err := fsm.Send(f.t.Context(), f.eng, id, name, payload, nil); err != nil {
		f.t.Fatal(err)
	}
}

func start[S any](f *fixture, d *fsm.Definition[S], state S, options *fsm.StartOptions) string {
	f.t.Helper()
	started, err := fsm.Start(f.t.Context(), f.eng, d, state, options)
	if err != nil {
		f.t.Fatal(err)
	}
	return started.ID
}

type log struct{ Lines []string }

func (l *log) add(format string, args ...any) {
	l.Lines = append(l.Lines, fmt.Sprintf(format, args...))
}

// leaf is a machine that ends at once: with its state, or failing for 2.
var leaf = fsm.Define("leaf", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
	if r.State == 2 {
		return r.Stop("two"), nil
	}
	return r.Done(r.State * 10), nil
}, nil))

// TestOrderFulfilment takes an instance through all outcomes: a step that is
// tried again, an await, a fan-out with a failing child and one whose key is
// taken, and the end.
func TestOrderFulfilment(t *testing.T) {
	each(t, func(f *fixture) {
		order := fsm.Define("order", 1, nil,
			fsm.Step("charge", func(_ context.Context, r *fsm.Run[log]) (fsm.Outcome, error) {
				r.State.add("charge %d", r.Attempt)
				if r.Attempt < 3 {
					return fsm.Outcome{}, errors.New("declined")
				}
				return r.Next("confirm"), nil
			}, nil),
			fsm.Step("confirm", func(_ context.Context, r *fsm.Run[log]) (fsm.Outcome, error) {
				r.State.add("confirm")
				return r.Await("paid", "void").Then("ship").Within(time.Hour), nil
			}, nil),
			fsm.Step("ship", func(_ context.Context, r *fsm.Run[log]) (fsm.Outcome, error) {
				r.State.add("ship after %d signals, timed out %v", len(r.Awaited), r.TimedOut)
				children := []fsm.ChildSpec{
					fsm.ChildOf(leaf, 1, nil), fsm.ChildOf(leaf, 2, nil),
					fsm.ChildOf(leaf, 3, &fsm.StartOptions{Unique: "x"}), fsm.ChildOf(leaf, 4, &fsm.StartOptions{Unique: "x"}),
				}
				return r.Spawn(children...).Then("close"), nil
			}, nil),
			fsm.Step("close", func(ctx context.Context, r *fsm.Run[log]) (fsm.Outcome, error) {
				children, err := r.Children(ctx)
				if err != nil {
					return fsm.Outcome{}, err
				}
				for _, c := range children {
					r.State.add("child %d is %s %s%s", c.Ordinal, c.Status, c.Result, c.Error)
				}
				r.State.add("dropped %d", len(r.Dropped))
				return r.Done(r.State.Lines), nil
			}, nil),
		)
		f.register(order, leaf)
		id := start(f, order, log{}, nil)
		f.drain()
		f.wantStatus(id, fsm.Retrying)
		f.after(time.Minute)
		f.after(time.Minute)
		f.wantWait(id, fsm.ForSignal)
		f.send(id, "paid", map[string]int{"amount": 42})
		f.drain()
		want := `["charge 3","confirm","ship after 1 signals, timed out false","child 0 is done 10",` +
			`"child 1 is stopped two","child 2 is done 30","dropped 1"]`
		if diff := cmp.Diff(want, string(f.get(id).Result)); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		var ended *perdure.StateError
		if _, err := fsm.Send(t.Context(), f.eng, id, "paid", nil, nil); !errors.As(err, &ended) {
			t.Errorf("signal to an ended instance: %v, want *perdure.StateError", err)
		}
	})
}

// A partition runs its instances one after the other, in the order of their
// starts, also when the head is delayed or fails.
func TestPartitionRunsInOrder(t *testing.T) {
	each(t, func(f *fixture) {
		var order []int
		d := fsm.Define("step", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
			if r.State == 1 && r.Attempt == 1 {
				return r.Replay(time.Minute), nil
			}
			order = append(order, r.State)
			if r.State == 2 {
				return r.Stop("two"), nil
			}
			return r.Done(nil), nil
		}, nil))
		f.register(d)
		options := &fsm.StartOptions{Partition: "customer 7"}
		ids := make([]string, 5)
		for i := range 3 {
			ids[i] = start(f, d, i, options)
		}
		started, err := fsm.StartMany(t.Context(), f.eng, d, []int{3, 4}, []*fsm.StartOptions{options, options})
		if err != nil {
			t.Fatal(err)
		}
		ids[3], ids[4] = started[0].ID, started[1].ID
		f.wantWait(ids[4], fsm.ForTurn)
		f.drain()
		f.wantStatus(ids[1], fsm.Scheduled)
		f.wantWait(ids[2], fsm.ForTurn)
		f.after(time.Minute)
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestUniqueKeyIsFreeAfterTheEnd(t *testing.T) {
	each(t, func(f *fixture) {
		f.register(leaf)
		options := &fsm.StartOptions{Unique: "k"}
		first, err := fsm.Start(t.Context(), f.eng, leaf, 1, options)
		if err != nil {
			t.Fatal(err)
		}
		second, err := fsm.Start(t.Context(), f.eng, leaf, 1, options)
		if err != nil || !second.Duplicate || second.ID != first.ID {
			t.Errorf("second start: %+v, %v, want a duplicate of %s", second, err, first.ID)
		}
		f.drain()
		third, err := fsm.Start(t.Context(), f.eng, leaf, 1, options)
		if err != nil || third.Duplicate {
			t.Errorf("start after the end: %+v, %v, want a new instance", third, err)
		}
	})
}

func TestAwaitTimesOut(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("wait", 1, nil,
			fsm.Step("park", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
				return r.Await("go").Then("end").Within(time.Hour), nil
			}, nil),
			fsm.Step("end", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(r.TimedOut), nil }, nil),
		)
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		if n := f.after(59 * time.Minute); n != 0 {
			t.Errorf("%d ran before the timeout", n)
		}
		f.after(time.Minute)
		if got := string(f.get(id).Result); got != "true" {
			t.Errorf("timed out: %s, want true", got)
		}
	})
}

// Cancelling ends the instance and its children, wherever they are.
func TestCancelCascades(t *testing.T) {
	each(t, func(f *fixture) {
		child := fsm.Define("child", 1, nil,
			fsm.Step("park", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Await("go").Then("end"), nil }, nil),
			fsm.Step("end", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil),
		)
		parent := fsm.Define("parent", 1, nil,
			fsm.Step("fan", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
				return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, &fsm.StartOptions{Delay: time.Hour})).Then("end"), nil
			}, nil),
			fsm.Step("end", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil),
		)
		f.register(parent, child)
		id := start(f, parent, 0, nil)
		f.drain()
		f.wantWait(id, fsm.ForChildren)
		if err := f.Cancel(t.Context(), id, "not wanted"); err != nil {
			t.Fatal(err)
		}
		f.wantStatus(id, fsm.Cancelled)
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: id}, "", 0)
		if err != nil || len(children) != 2 {
			t.Fatalf("children: %v, %v", children, err)
		}
		for _, c := range children {
			f.wantStatus(c.ID, fsm.Cancelled)
		}
		if n := f.after(2 * time.Hour); n != 0 {
			t.Errorf("%d ran after the cancel", n)
		}
	})
}

// An instance that ends badly can be sent on its way again.
func TestRetryGoesOnFromTheFailedStep(t *testing.T) {
	each(t, func(f *fixture) {
		broken := true
		d := fsm.Define("flaky", 1, nil,
			fsm.Step("one", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { r.State++; return r.Next("two"), nil }, nil),
			fsm.Step("two", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
				if broken {
					return r.Stop("broken"), nil
				}
				return r.Done(r.State), nil
			}, nil),
		)
		f.register(d)
		id := start(f, d, 0, &fsm.StartOptions{Unique: "u", Partition: "p"})
		f.drain()
		f.wantStatus(id, fsm.Stopped)
		broken = false
		if err := f.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		f.drain()
		if got := f.get(id); got.Status != fsm.Done || string(got.Result) != "1" {
			t.Errorf("after retry: %s %s, want done 1", got.Status, got.Result)
		}
	})
}

// Signal-with-start finds the instance of a key or makes it.
func TestSendOrStart(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("counter", 1, nil,
			fsm.Step("park", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Await("add").Then("add"), nil }, nil),
			fsm.Step("add", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
				r.State += len(r.Awaited)
				if r.State >= 3 {
					return r.Done(r.State), nil
				}
				return r.Await("add").Then("add"), nil
			}, nil),
		)
		f.register(d)
		var id string
		for i := range 3 {
			started, err := fsm.SendOrStart(t.Context(), f.eng, d, 0, &fsm.StartOptions{Unique: "cart 1"}, "add", i, nil)
			if err != nil || started.Duplicate != (i > 0) {
				t.Fatalf("send %d: %+v, %v", i, started, err)
			}
			id = started.ID
			f.drain()
		}
		if got := f.get(id); string(got.Result) != "3" {
			t.Errorf("result is %s (%s), want 3: each signal counted once", got.Result, got.Status)
		}
	})
}
