package fsm_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// lookEvery is the interval at which processes look for cancelled work.
const lookEvery = 500 * time.Millisecond

// endless is a machine whose step runs until its context is cancelled, and tells when
// that was.
func endless(name string, began, over chan<- string) *fsm.Definition[int] {
	return machine(name, func(ctx context.Context, r run) (fsm.Outcome, error) {
		began <- r.ID
		<-ctx.Done()
		over <- r.ID
		return fsm.Outcome{}, ctx.Err()
	})
}

// Cancel ends the context of a step that runs in this process without a heartbeat:
// the clock stands still.
func TestCancelReachesARunningStepOfThisProcessImmediately(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		began, over := make(chan string, 1), make(chan string, 1)
		d := endless("endless", began, over)
		f.register(d)
		id := start(f, d, 0, nil)
		wait := f.begin()
		<-began
		enginetest.NoError(t, f.Cancel(t.Context(), id, "no longer needed"))
		<-over
		wait()
		f.wantStatus(id, fsm.Cancelled)
		f.wantGone()
		lost.is(t, "errors for a cancel that was asked for", 0)
	})
}

// A step that returns before its process has learned of the cancel in another process
// is no error either: only its outcome is dropped.
func TestAStepThatReturnsAfterItsCancelIsNoError(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		began, end := make(chan struct{}), make(chan struct{})
		d := fsm.Define("slow", 1, nil, fsm.Step("only", func(_ context.Context, r run) (fsm.Outcome, error) {
			close(began)
			<-end
			return r.Done(nil), nil
		}, nil))
		f.register(d)
		id := start(f, d, 0, nil)
		wait := f.begin()
		<-began
		enginetest.NoError(t, f.beside(f.clock, nil).Cancel(t.Context(), id, "no longer needed"))
		close(end) // the clock stands still: the process does not look
		wait()
		f.wantStatus(id, fsm.Cancelled)
		f.wantGone()
		lost.is(t, "errors for a cancel that was asked for", 0)
	})
}

// Cancel in another process ends the context of a running step when that process looks
// the next time, which is half a second later and not a heartbeat later.
func TestCancelReachesARunningStepOfAnotherProcess(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		began, over := make(chan string, 1), make(chan string, 1)
		d := endless("endless", began, over)
		f.register(d)
		id := start(f, d, 0, nil)
		wait := f.begin()
		<-began
		client := f.beside(f.clock, nil)
		enginetest.NoError(t, client.Cancel(t.Context(), id, "no longer needed"))
		select {
		case <-over:
			t.Error("the step has ended before its process looked")
		default:
		}
		f.clock.Advance(lookEvery)
		<-over
		wait()
		f.wantStatus(id, fsm.Cancelled)
		f.wantGone()
		lost.is(t, "errors for a cancel that was asked for", 0)
	})
}
