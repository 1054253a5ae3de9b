package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/histogram"
)

// lease is that of the tests' workers; they run in virtual time.
const lease = 30 * time.Second

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// process runs the worker in the background.
func process(t *testing.T, w *core.Worker) (wait func() int) {
	t.Helper()
	done := make(chan int, 1)
	go func() {
		n, err := w.Process(context.Background())
		if err != nil {
			t.Errorf("process: %v", err)
		}
		done <- n
	}()
	return func() int { return <-done }
}

func TestProcessRunsAllThatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(50)
		table.rows[7].due = time.Now().Add(time.Hour)
		w := table.worker(8)
		n, err := w.Process(context.Background())
		noError(t, err)
		equal(t, "runs", n, 49)
		equal(t, "stats", counted(w), core.Stats{Claimed: 49, Committed: 49})
	})
}

func TestSlotsBoundWhatRunsAndAreUsedAgainOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(6), newBlocker()
		table.run = b.run
		w := table.worker(4)
		wait := process(t, w)
		synctest.Wait()
		equal(t, "begun", len(b.begun), 4)
		b.release <- struct{}{} // one of four ends
		synctest.Wait()
		equal(t, "begun", len(b.begun), 5)
		equal(t, "running", w.Stats().Running, 4)
		close(b.release)
		equal(t, "runs", wait(), 6)
	})
}

func TestStartDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(3), newBlocker()
		table.run = b.run
		w := table.worker(2)
		n, err := w.Start(context.Background())
		noError(t, err)
		equal(t, "begun", n, 2)
		n, err = w.Start(context.Background())
		noError(t, err)
		equal(t, "begun without slots", n, 0)
		equal(t, "claims without slots", table.count("claim"), 1)
		close(b.release)
		noError(t, w.Drain(context.Background()))
		done, _, _, _ := table.sums()
		equal(t, "done", done, 2)
	})
}

func TestAHungryWorkerTellsEverySubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(3), newBlocker()
		table.run = b.run
		w := table.worker(2)
		var mu sync.Mutex
		told := map[string]int{}
		tell := func(name string) func() {
			return func() { mu.Lock(); defer mu.Unlock(); told[name]++ }
		}
		w.OnFree(tell("first"))
		w.OnFree(tell("second"))
		w.OnFree(tell("cancelled"))() // another dispatcher that has stopped
		start := func(want int) {
			t.Helper()
			n, err := w.Start(context.Background())
			noError(t, err)
			equal(t, "begun", n, want)
		}
		start(2)
		b.release <- struct{}{}
		synctest.Wait()
		equal(t, "told", fmt.Sprint(told), "map[first:1 second:1]")
		start(1) // the last one; both slots are taken, so it is hungry
		b.release <- struct{}{}
		b.release <- struct{}{}
		synctest.Wait()
		start(0)
		equal(t, "told", fmt.Sprint(told), "map[first:2 second:2]")
	})
}

// A dispatcher that sleeps until Next must not spin while all slots are taken.
func TestNextIsNotNowWhileAllSlotsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(2), newBlocker()
		table.run = b.run
		w := table.worker(1)
		_, err := w.Start(context.Background())
		noError(t, err)
		wait, ok, err := w.Next(context.Background())
		noError(t, err)
		if !ok || wait < lease/10 {
			t.Fatalf("next is in %v (%v), want a while", wait, ok)
		}
		told := false
		w.OnFree(func() { told = true })
		close(b.release)
		synctest.Wait()
		equal(t, "told of the free slot", told, true)
		wait, ok, err = w.Next(context.Background())
		noError(t, err)
		if !ok || wait > 0 {
			t.Fatalf("next is in %v (%v), want now", wait, ok)
		}
		noError(t, w.Drain(context.Background()))
		_, ok, err = w.Next(context.Background())
		noError(t, err)
		equal(t, "next of a worker that has stopped", ok, false)
	})
}

func TestAHeartbeatRenewsAllInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(20), newBlocker()
		table.run = b.patient
		w := table.worker(20)
		wait := process(t, w)
		pass(10 * lease) // virtual
		synctest.Wait()
		equal(t, "heartbeats", table.count("extend"), 50)
		rival := table.worker(20)
		n, err := rival.Process(context.Background())
		noError(t, err)
		equal(t, "runs of another process", n, 0)
		close(b.release)
		equal(t, "runs", wait(), 20)
		_, runs, crashes, _ := table.sums()
		equal(t, "runs", runs, 20)
		equal(t, "crashes", crashes, 0)
		equal(t, "errors", len(table.reported()), 0)
	})
}

func TestAnIdleWorkerMakesNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(3)
		w := table.worker(4)
		_, err := w.Process(context.Background())
		noError(t, err)
		before := table.total()
		pass(24 * time.Hour)
		synctest.Wait()
		equal(t, "calls", table.total(), before)
	})
}

func TestALostClaimEndsItsContextAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(3), newBlocker()
		table.run = b.patient
		w := table.worker(3)
		wait := process(t, w)
		synctest.Wait()
		table.mu.Lock()
		table.rows[1].token = "of somebody else"
		table.mu.Unlock()
		pass(lease / 4)
		synctest.Wait()
		equal(t, "running", w.Stats().Running, 2)
		close(b.release)
		equal(t, "runs", wait(), 3)
		equal(t, "stats", counted(w), core.Stats{Claimed: 3, Committed: 2, Lost: 1})
		if errs := table.reported(); len(errs) != 1 || !errors.Is(errs[0], core.ErrLost) {
			t.Fatalf("reported were %v", errs)
		}
	})
}

// When the database cannot be reached, the contexts end before the leases do,
// by our own clock, whatever the call to the database does.
func TestWithoutADatabaseWorkEndsBeforeItsLease(t *testing.T) {
	for name, extend := range map[string]func(ctx context.Context, end <-chan struct{}) error{
		"fails":             func(context.Context, <-chan struct{}) error { return errors.New("connection refused") },
		"hangs until bound": func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"hangs":             func(_ context.Context, end <-chan struct{}) error { <-end; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, b := newTable(2), newBlocker()
				table.run = b.patient
				end := make(chan struct{})
				defer close(end)
				table.extend = func(ctx context.Context) error { return extend(ctx, end) }
				table.give = func() error { return errors.New("connection refused") }
				began := time.Now()
				w := table.worker(2)
				equal(t, "runs", process(t, w)(), 2)
				if took := time.Since(began); took >= lease || took < lease/2 {
					t.Fatalf("the work was ended after %v, want shortly before %v", took, lease)
				}
				equal(t, "lost", w.Stats().Lost, 2)
			})
		})
	}
}

func TestAHeartbeatThatFailsOnceIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(1), newBlocker()
		table.run = b.patient
		failures := 3
		table.extend = func(context.Context) error {
			if failures--; failures >= 0 {
				return errors.New("hiccup")
			}
			return nil
		}
		w := table.worker(1)
		wait := process(t, w)
		pass(3 * lease)
		close(b.release)
		equal(t, "runs", wait(), 1)
		equal(t, "stats", counted(w), core.Stats{Claimed: 1, Committed: 1})
		equal(t, "reported", len(table.reported()), 3)
	})
}

func TestAPanicIsReportedAndFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(3)
		table.run = func(_ context.Context, id string) error {
			if id == "row-001" {
				panic("no")
			}
			return nil
		}
		w := table.worker(1)
		for range table.rows {
			_, err := w.Start(context.Background())
			noError(t, err)
			synctest.Wait()
		}
		errs := table.reported()
		var panicked *core.PanicError
		if len(errs) != 1 || !errors.As(errs[0], &panicked) || panicked.Value != "no" || len(panicked.Stack) == 0 {
			t.Fatalf("reported were %v", errs)
		}
		equal(t, "stats", counted(w), core.Stats{Claimed: 3, Committed: 2, Errors: 1})
	})
}

func TestACallbackThatPanicsEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		table.run = func(context.Context, string) error { return errors.New("no outcome") }
		w := core.NewWorker(core.Kind{
			Name: "row", Claim: table.claimRows, Begin: table.begin, Extend: table.extendRows, Release: table.release, Next: table.next,
		}, core.Options{Concurrency: 1, Lease: lease, Clock: clock.System, OnError: func(error) { panic("callback") }})
		_, err := w.Start(context.Background())
		noError(t, err)
		synctest.Wait()
		equal(t, "stats", counted(w), core.Stats{Claimed: 1, Errors: 1})
	})
}

func TestSweepsComeNowAndThenAndOnlyAfterWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(10)
		for i, r := range table.rows {
			r.due = time.Now().Add(time.Duration(i) * 20 * time.Minute)
		}
		w := table.worker(1)
		for range table.rows {
			_, err := w.Process(context.Background())
			noError(t, err)
			pass(20 * time.Minute)
		}
		equal(t, "sweeps in three hours", table.count("sweep"), 4) // one at the start
		pass(24 * time.Hour)
		equal(t, "sweeps while idle", table.count("sweep"), 4)
	})
}

// pass lets time pass: virtual time, in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }

// counted returns the worker's statistics without its durations.
func counted(w *core.Worker) core.Stats {
	s := w.Stats()
	s.Took, s.Waited = histogram.Counts{}, histogram.Counts{}
	return s
}

func TestAWorkerMeasuresHowLongWorkWaitedAndTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var workers core.Workers
		claims := []*core.Claim{{ID: "1", Due: clock.System.Now().Add(-time.Minute)}}
		w := core.NewWorker(core.Kind{
			Name: "thing",
			Claim: func(context.Context, int, time.Duration) ([]*core.Claim, error) {
				taken := claims
				claims = nil
				return taken, nil
			},
			Begin: func(_ context.Context, c *core.Claim) {
				<-clock.System.NewTimer(time.Second).C()
				c.Failed = true
				c.End(nil)
			},
			Next:   func(context.Context) (time.Duration, bool, error) { return -time.Hour, true, nil },
			Extend: func(context.Context, []*core.Claim, time.Duration) ([]*core.Claim, error) { return nil, nil },
		}, core.Options{Queue: "some", Workers: &workers, Concurrency: 1, Lease: lease, Clock: clock.System})
		if _, err := w.Process(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := workers.All()[0].Stats()
		equal(t, "took", s.Took.Sum, time.Second)
		equal(t, "waited", s.Waited.Sum, time.Minute)
		equal(t, "failed", s.Failed, 1)
		wait, ok, err := w.Due(t.Context())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		equal(t, "wait", wait, -time.Hour)
		equal(t, "name", w.Kind()+"/"+w.Queue(), "thing/some")
	})
}
