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

// booking is a machine that waits with a changed state, and has a cancel step that
// tells what it was given.
func booking(name string, wait func(r run) fsm.Outcome) *fsm.Definition[int] {
	return fsm.Define(name, 1, &with{OnCancel: "refund"},
		fsm.Step("book", always(func(r run) fsm.Outcome { r.State = 7; return r.Next("wait") }), nil),
		fsm.Step("wait", always(wait), nil),
		fsm.Step("end", done, nil),
		fsm.Step("refund", always(func(r run) fsm.Outcome {
			return r.Done(fmt.Sprintf("%d %v %s %d %d %v", r.State, r.Cancelled, r.CancelReason, len(r.All), len(r.Awaited), r.TimedOut))
		}), nil),
	)
}

// A cancelled instance runs its cancel step, with the state and the inbox that it had,
// wherever it was; a second cancel changes nothing.
func TestCancelRunsTheCancelStep(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		waits := booking("waits", func(r run) fsm.Outcome { return r.Await("never").Then("end").Within(time.Hour) })
		sleeps := booking("sleeps", func(r run) fsm.Outcome { return r.Replay(time.Hour) })
		joins := booking("joins", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(leaf, 1, late), fsm.ChildOf(waits, 0, nil)).Then("end")
		})
		f.register(waits, sleeps, joins, leaf)
		var ids []string
		for _, d := range []*fsm.Definition[int]{waits, sleeps, joins} {
			ids = append(ids, start(f, d, 0, &fsm.StartOptions{Deadline: 2 * time.Hour}))
		}
		f.drain()
		for _, id := range ids {
			f.send(id, "other", 1)
			for range 2 {
				enginetest.NoError(t, f.Cancel(t.Context(), id, "changed my mind"))
			}
		}
		f.drain()
		for _, id := range ids {
			f.wantResult(id, `"7 true changed my mind 1 0 false"`)
		}
		children, _, err := f.List(t.Context(), fsm.Filter{Parent: ids[2]}, "", 0)
		enginetest.NoError(t, err)
		var ends []string
		for _, c := range children {
			ends = append(ends, fmt.Sprintf("%s %s %s", c.Definition, c.Status, c.Result))
		}
		want := []string{fmt.Sprintf(`waits done "7 true cancelled by parent %s: changed my mind 0 0 false"`, ids[2]), "leaf cancelled "}
		if diff := cmp.Diff(want, ends); diff != "" {
			t.Errorf("children (-want +got):\n%s", diff)
		}
		f.wantGone()
	})
}

// A deadline runs the cancel step too, and is gone with that.
func TestADeadlineRunsTheCancelStep(t *testing.T) {
	each(t, func(f *fixture) {
		d := booking("waits", func(r run) fsm.Outcome { return r.Await("never").Then("end") })
		f.register(d)
		id := start(f, d, 0, &fsm.StartOptions{Deadline: time.Hour})
		f.drain()
		f.after(time.Hour)
		f.wantResult(id, `"7 true deadline exceeded 0 0 false"`)
		f.wantGone()
	})
}

// Terminate ends an instance without its cancel step.
func TestTerminateRunsNoCancelStep(t *testing.T) {
	each(t, func(f *fixture) {
		d := booking("waits", func(r run) fsm.Outcome { return r.Await("never").Then("end") })
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		enginetest.NoError(f.t, f.Terminate(f.t.Context(), id, "stop"))
		f.drain()
		f.wantStatus(id, fsm.Cancelled)
		f.wantGone()
	})
}

// An instance shows its cancel step, and why it has continued with it, until it is
// removed. A definition shows its cancel step to processes that do not have its code,
// and instances that these start have it too.
func TestAnInstanceShowsWhyItWasCancelled(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		d := booking("waits", func(r run) fsm.Outcome { return r.Await("never").Then("end") })
		f.register(d, leaf)
		enginetest.NoError(t, f.Announce(t.Context()))
		all, err := f.Definitions(t.Context())
		enginetest.NoError(t, err)
		steps := map[string]string{}
		for _, r := range all {
			steps[r.Name] = r.OnCancel
		}
		if diff := cmp.Diff(map[string]string{"waits": "refund", leaf.Name(): ""}, steps); diff != "" {
			t.Errorf("cancel steps of definitions (-want +got):\n%s", diff)
		}
		started, err := f.StartNamed(t.Context(), "waits", 0, []byte("0"), nil)
		enginetest.NoError(t, err)
		f.drain()
		f.wantCancel(started.ID, "refund", "")
		enginetest.NoError(t, f.Cancel(t.Context(), started.ID, "changed my mind"))
		f.wantCancel(started.ID, "refund", "changed my mind")
		f.drain()
		f.wantStatus(started.ID, fsm.Done)
		f.wantCancel(started.ID, "refund", "changed my mind")
		plain := start(f, leaf, 1, late)
		enginetest.NoError(t, f.Cancel(t.Context(), plain, "not now"))
		f.wantCancel(plain, "", "")
	})
}

// wantCancel checks the cancel step of an instance and why it continued with it.
func (f *fixture) wantCancel(id, step, reason string) {
	f.t.Helper()
	i, err := f.Get(f.t.Context(), id)
	enginetest.NoError(f.t, err)
	if i.OnCancel != step || i.CancelReason != reason {
		f.t.Errorf("cancel step %q with reason %q, want %q with %q", i.OnCancel, i.CancelReason, step, reason)
	}
}

// An instance that waits for its turn in a partition keeps its place in the queue.
func TestACancelledInstanceWaitsForItsTurn(t *testing.T) {
	each(t, func(f *fixture) {
		d := booking("waits", func(r run) fsm.Outcome { return r.Await("go").Then("end") })
		f.register(d)
		in := &fsm.StartOptions{Partition: "p"}
		first, second := start(f, d, 0, in), start(f, d, 3, in)
		f.drain()
		enginetest.NoError(f.t, f.Cancel(f.t.Context(), second, "no"))
		f.drain()
		f.wantWait(second, fsm.ForTurn)
		f.send(first, "go", nil)
		f.drain()
		f.wantResult(second, `"3 true no 0 0 false"`)
		f.wantGone()
	})
}

// A step that runs is interrupted, its outcome is dropped, and the cancel step begins
// when it has returned, in whichever process the cancellation happens. If the process
// is lost, another one runs the cancel step.
func TestTheCancelStepWaitsForTheStepThatRuns(t *testing.T) {
	for _, how := range []string{"same process", "other process", "past the lease", "lost process"} {
		t.Run(how, func(t *testing.T) {
			var lost counter
			options := quiet(&lost)
			if how == "past the lease" {
				options.Lease = 2 * time.Second
			}
			eachWith(t, *options, func(f *fixture) {
				t := f.t
				held := newGate(t)
				var beside counter
				d := fsm.Define("slow", 1, &with{OnCancel: "refund"},
					fsm.Step("run", func(_ context.Context, r run) (fsm.Outcome, error) {
						held.pass(r.ID)
						r.State = 99
						return r.Next("end"), nil
					}, nil),
					fsm.Step("end", done, nil),
					fsm.Step("refund", always(func(r run) fsm.Outcome {
						select {
						case <-held.open:
						default:
							beside.add()
						}
						return r.Done(r.State)
					}), nil),
				)
				f.register(d)
				other := f.beside(f.clock, options)
				other.register(d)
				id := start(f, d, 5, nil)
				wait := f.begin()
				held.await(t)
				canceller := f
				if how != "same process" {
					canceller = other
				}
				enginetest.NoError(t, canceller.Cancel(t.Context(), id, "no"))
				enginetest.NoError(t, canceller.Cancel(t.Context(), id, "again"))
				if how == "past the lease" {
					f.clock.Advance(3 * time.Second)
				}
				other.drain()
				if how == "lost process" { // it never returns
					f.clock.Advance(10 * minute)
					enginetest.Eventually(t, "another process runs the cancel step", func() bool { other.drain(); return f.get(id).Status.Finished() })
					f.wantResult(id, "5")
					held.release()
					wait()
					return
				}
				f.wantStatus(id, fsm.Running)
				held.release()
				wait()
				if other.drain(); how == "past the lease" { // its process has lost the claim meanwhile
					f.clock.Advance(minute)
					enginetest.Eventually(t, "the cancel step runs", func() bool { other.drain(); return f.get(id).Status.Finished() })
				}
				f.wantResult(id, "5")
				beside.is(t, "cancel steps beside the step that was running", 0)
				f.wantGone()
			})
		})
	}
}

// A cancel step that does not exist is a mistake of the definition.
func TestTheCancelStepMustExist(t *testing.T) {
	each(t, func(f *fixture) {
		enginetest.As[error](f.t, f.Register(machine("m", done, with{OnCancel: "missing"})))
	})
}
