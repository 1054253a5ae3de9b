package core_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
)

const patience = 10 * time.Second

// outcome is how a call ended, and when.
type outcome struct {
	err error
	at  time.Duration
}

// calling returns a worker of one row whose work is a call of fn, and how it ends.
func calling(fn func(context.Context) error) (*core.Worker, <-chan outcome) {
	table, ends, began := newTable(1), make(chan outcome, 1), time.Now()
	return core.NewWorker(core.Kind{
		Name: "row", Claim: table.claimRows, Extend: table.extendRows, Release: table.release, Next: table.next, Sweep: table.sweep,
		Begin: func(ctx context.Context, c *core.Claim) {
			c.Call(ctx, core.Limits{Timeout: time.Second, Patience: patience}, fn, func(err error) {
				ends <- outcome{err, time.Since(began)}
				c.Work.(*row).done = true
				c.End(nil)
			})
		},
	}, core.Options{Concurrency: 1, Lease: lease, SweepEvery: time.Hour, Clock: clock.System, OnError: table.onError}), ends
}

func TestACallEndsAsItsFunctionDoes(t *testing.T) {
	slow := errors.New("slow, but in time")
	for name, c := range map[string]struct {
		fn func(context.Context) error
		is func(outcome) bool
	}{
		"at once":     {func(context.Context) error { return nil }, func(o outcome) bool { return o.err == nil && o.at == 0 }},
		"by a panic":  {func(context.Context) error { panic(nil) }, func(o outcome) bool { return errors.As(o.err, new(*core.PanicError)) }},
		"by an exit":  {func(context.Context) error { runtime.Goexit(); return nil }, func(o outcome) bool { return o.err != nil }},
		"at its end":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, func(o outcome) bool { return errors.Is(o.err, context.DeadlineExceeded) && o.at == time.Second }},
		"after it":    {func(ctx context.Context) error { <-ctx.Done(); pass(patience / 2); return slow }, func(o outcome) bool { return errors.Is(o.err, slow) }},
		"for a child": {waitForChild, func(o outcome) bool { return errors.Is(o.err, context.DeadlineExceeded) && o.at == time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, ends := calling(c.fn)
				equal(t, "runs", process(t, w)(), 1)
				if got := <-ends; !c.is(got) {
					t.Fatalf("it ended after %v with %v", got.at, got.err)
				}
			})
		})
	}
}

// waitForChild waits for a context that is derived from that of the call.
func waitForChild(ctx context.Context) error {
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	if deadline, ok := child.Deadline(); !ok || time.Until(deadline) != time.Second {
		return errors.New("the deadline is not known")
	}
	<-child.Done()
	return child.Err()
}

func TestACallThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w, ends := calling(func(context.Context) error { <-release; return nil })
		equal(t, "runs", process(t, w)(), 1)
		got := <-ends
		if !errors.As(got.err, new(*core.AbandonedError)) || !errors.Is(got.err, context.DeadlineExceeded) {
			t.Fatalf("the error is %v", got.err)
		}
		equal(t, "time until it was abandoned", got.at, time.Second+patience)
		close(release)
	})
}

func TestACallEndsWithItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		w, ends := calling(func(ctx context.Context) error { close(begun); <-ctx.Done(); return context.Cause(ctx) })
		wait := process(t, w)
		<-begun
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		noError(t, w.Drain(ctx))
		equal(t, "runs", wait(), 1)
		equal(t, "cause", (<-ends).err, core.ErrStopping)
	})
}

// Work that blocks must not keep other work from being begun, however many
// goroutines that takes; work that does not needs but a few.
func TestEveryPieceOfWorkIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(1000), newBlocker()
		b.begun = make(chan string, 1000)
		table.run = b.run
		w := table.worker(1000)
		wait := process(t, w)
		for range 1000 {
			<-b.begun
		}
		close(b.release)
		equal(t, "runs", wait(), 1000)
	})
}
