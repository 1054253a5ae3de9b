package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/failpoint"
)

func TestDrainWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(3), newBlocker()
		table.run = b.patient
		w := table.worker(2)
		_, err := w.Start(context.Background())
		noError(t, err)
		go func() {
			pass(time.Hour)
			close(b.release)
		}()
		began := time.Now()
		noError(t, w.Drain(context.Background()))
		equal(t, "time to drain", time.Since(began), time.Hour)
		done, _, _, released := table.sums()
		equal(t, "done", done, 2)
		equal(t, "released", released, 0)
		n, err := w.Process(context.Background())
		noError(t, err)
		equal(t, "runs after the drain", n, 0)
		equal(t, "claims after the drain", table.count("claim"), 1)
		noError(t, w.Drain(context.Background())) // again
	})
}

func TestDrainReleasesWhatGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(2), newBlocker()
		table.run = b.patient
		w := table.worker(2)
		wait := process(t, w)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		noError(t, w.Drain(ctx))
		equal(t, "time to drain", time.Since(began), time.Minute)
		equal(t, "begun", wait(), 2)
		done, _, crashes, released := table.sums()
		equal(t, "done", done, 0)
		equal(t, "released", released, 2)
		equal(t, "crashes", crashes, 0)
	})
}

func TestDrainIsBoundedWhateverTheWorkDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, b := newTable(1), newBlocker()
		table.run = b.run // deaf
		w := table.worker(1)
		_, err := w.Start(context.Background())
		noError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := w.Drain(ctx); err == nil {
			t.Fatal("drain says that nothing runs any more")
		}
		if took := time.Since(began); took > time.Minute+5*time.Second {
			t.Fatalf("drain took %v", took)
		}
		close(b.release)
		noError(t, w.Drain(context.Background()))
	})
}

func TestWhatIsClaimedWhileStoppingIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(2)
		inClaim, goOn := make(chan struct{}), make(chan struct{})
		table.claim = func() { close(inClaim); <-goOn }
		w := table.worker(2)
		wait := process(t, w)
		<-inClaim
		drained := make(chan error, 1)
		go func() { drained <- w.Drain(context.Background()) }()
		synctest.Wait()
		close(goOn)
		equal(t, "runs", wait(), 0)
		noError(t, <-drained)
		done, runs, crashes, released := table.sums()
		equal(t, "done", done, 0)
		equal(t, "runs", runs, 0)
		equal(t, "crashes", crashes, 0)
		equal(t, "released", released, 2)
	})
}

func TestAClaimThatFailsIsAnErrorOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		w := core.NewWorker(core.Kind{
			Name: "row", Claim: func(context.Context, int, time.Duration) ([]*core.Claim, error) { return nil, errors.New("down") },
			Begin: table.begin, Extend: table.extendRows, Release: table.release, Next: table.next,
		}, core.Options{Concurrency: 1, Lease: lease, Clock: clock.System, OnError: table.onError})
		if _, err := w.Process(context.Background()); err == nil || err.Error() != "claim row: down" {
			t.Fatalf("the error is %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := table.worker(1).Process(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("the error is %v", err)
		}
	})
}

// A process that dies right after it has claimed leaves rows that are run when
// their lease has expired, by somebody else.
func TestDeathAfterTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(3)
		died := errors.New("died")
		reset := failpoint.Set("core.claimed", func() error { return died })
		defer reset()
		if _, err := table.worker(3).Process(context.Background()); !errors.Is(err, died) {
			t.Fatalf("the error is %v", err)
		}
		reset()
		other := table.worker(3)
		n, err := other.Process(context.Background())
		noError(t, err)
		equal(t, "runs before the lease ends", n, 0)
		pass(lease)
		n, err = other.Process(context.Background())
		noError(t, err)
		equal(t, "runs", n, 3)
		done, runs, crashes, _ := table.sums()
		equal(t, "done", done, 3)
		equal(t, "runs", runs, 3)
		equal(t, "crashes", crashes, 3)
	})
}
