package fsm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// A step that takes longer than it may has failed; one that does not even return
// is left behind.
func TestAStepHasItsTime(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := fsm.Define("slow", 1, &with{Retry: once}, fsm.Step("only", func(ctx context.Context, _ run) (fsm.Outcome, error) {
			<-ctx.Done()
			return fsm.Outcome{}, context.Cause(ctx)
		}, &fsm.StepOptions{Timeout: 10 * time.Millisecond}))
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantStatus(id, fsm.Failed)
		if got := f.get(id).Error; !strings.Contains(got, "deadline") {
			t.Errorf("its error is %q", got)
		}
	})
}

// The policy of a machine without a handler is obeyed: so many attempts, then the
// end, with the last error.
func TestTheRetryPolicyIsObeyed(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var runs counter
		d := machine("never", func(context.Context, run) (fsm.Outcome, error) {
			return fsm.Outcome{}, fmt.Errorf("failure %d", runs.add())
		}, with{Retry: retry.Policy{Kind: retry.KindFixed, MaxAttempts: 3, Initial: time.Minute}})
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		f.after(minute)
		f.wantStatus(id, fsm.Retrying)
		f.after(minute)
		f.wantStatus(id, fsm.Failed)
		runs.is(t, "attempts", 3)
		if got := f.get(id).Error; got != "failure 3" {
			t.Errorf("its error is %q", got)
		}
	})
}

// An instance gives way after its budget of steps in a row.
func TestInlineContinuationHasABudget(t *testing.T) {
	eachWith(t, fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 1}, InlineSteps: 3}, func(f *fixture) {
		t := f.t
		var order []string
		d := fsm.Define("long", 1, nil, fsm.Step("again", func(_ context.Context, r run) (fsm.Outcome, error) {
			order = append(order, fmt.Sprintf("%d:%d", r.State/10, r.State%10))
			if r.State++; r.State%10 == 6 {
				return r.Done(nil), nil
			}
			return r.Next("again"), nil
		}, nil))
		f.register(d)
		start(f, d, 10, nil)
		f.clock.Advance(time.Second)
		start(f, d, 20, nil)
		f.clock.Advance(time.Second)
		f.drain()
		want := strings.Fields("1:0 1:1 1:2 2:0 2:1 2:2 1:3 1:4 1:5 2:3 2:4 2:5")
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// Machines is driven by the dispatchers, woken by starts, signals and time.
func TestDispatchersDriveMachines(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := fsm.Define("driven", 1, nil,
				fsm.Step("first", always(func(r run) fsm.Outcome { return r.Await("go").Then("second") }), nil),
				fsm.Step("second", always(func(r run) fsm.Outcome { return r.Await("never").Then("third").Within(20 * time.Millisecond) }), nil),
				fsm.Step("third", always(func(r run) fsm.Outcome { return r.Done(r.TimedOut) }), nil),
			)
			f := live(t, enginetest.New(t, name), nil, d)
			alarm, err := dispatch.NewWaker(f, nil)
			enginetest.NoError(t, err)
			alarm.Start()
			defer func() { enginetest.NoError(t, alarm.Stop(enginetest.Context(t))) }()
			id := start(f, d, 0, nil)
			enginetest.Eventually(t, "it waits", func() bool { return f.get(id).WaitsFor == fsm.ForSignal })
			f.send(id, "go", nil)
			if got := f.ends(id, fsm.Done); string(got.Result) != "true" {
				t.Errorf("timed out: %s", got.Result)
			}
		})
	}
}

// null is a value like any other.
func TestNullMakesTheRoundTrip(t *testing.T) {
	each(t, func(f *fixture) {
		d := fsm.Define("null", 1, nil,
			fsm.Step("first", func(_ context.Context, r *fsm.Run[*int]) (fsm.Outcome, error) {
				return r.Spawn(fsm.ChildOf(machine("child", always(func(r run) fsm.Outcome { return r.Done(nil) })), 0, nil)).Then("second"), nil
			}, nil),
			fsm.Step("second", func(ctx context.Context, r *fsm.Run[*int]) (fsm.Outcome, error) {
				children, err := r.Children(ctx)
				if err != nil || len(children) != 1 || string(children[0].Result) != "null" {
					return r.Stop(fmt.Sprint(children, err)), nil
				}
				return r.Await("go").Then("third"), nil
			}, nil),
			fsm.Step("third", func(_ context.Context, r *fsm.Run[*int]) (fsm.Outcome, error) {
				if r.State != nil || string(r.Awaited[0].Payload) != "null" {
					return r.Stop(fmt.Sprintf("state %v, payload %s", r.State, r.Awaited[0].Payload)), nil
				}
				return r.Done(nil), nil
			}, nil),
		)
		f.register(d, machine("child", always(func(r run) fsm.Outcome { return r.Done(nil) })))
		id := start(f, d, nil, nil)
		f.send(id, "go", nil)
		f.drain()
		f.wantResult(id, "null")
		if got := string(f.get(id).State); got != "null" {
			f.t.Errorf("the state is %q", got)
		}
	})
}
