package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
)

// away is an error of a database that cannot be reached.
var away = &sqldb.Transient{Err: errors.New("connection lost")}

// Work may run again at once if the database was away, or the claim was lost. After any
// other error it waits.
func TestOnlyTheAbsenceOfTheDatabaseIsImmediate(t *testing.T) {
	t.Parallel()
	for _, err := range []error{away, &sqldb.Uncertain{Err: errors.New("lost")}, &fault.Uncertain{Err: errors.New("lost")}, core.ErrLost, core.ErrStopping} {
		equal(t, fmt.Sprintf("immediate after %v", err), core.Immediate(err), true)
	}
	equal(t, "immediate after another error", core.Immediate(errors.New("something odd")), false)
	for random, want := range map[float64]time.Duration{0: 15 * time.Second, 0.5: 22500 * time.Millisecond} {
		equal(t, "delay", core.Postponement(func() float64 { return random }), want)
	}
}

// A resolver calls its function until the database answers, and is busy until then.
func TestAResolverTriesUntilTheDatabaseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, result := 0, make(chan error, 1)
		r := core.NewResolver(func() { ended++ })
		back := time.Now().Add(10 * time.Second)
		r.Go(func(context.Context) error {
			if time.Now().Before(back) {
				return away
			}
			return nil
		}, func(err error) { result <- err })
		synctest.Wait()
		equal(t, "busy while the database is away", r.Busy(), true)
		noError(t, <-result)
		synctest.Wait()
		equal(t, "busy at the end", r.Busy(), false)
		equal(t, "told", ended, 1)
		if late := time.Since(back); late > 2*time.Second {
			t.Errorf("it ended %v after the database was back", late)
		}
	})
}

// A resolver that is abandoned ends with the last error.
func TestAnAbandonedResolverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 1)
		r := core.NewResolver(func() {})
		r.Go(func(context.Context) error { return away }, func(err error) { result <- err })
		pass(time.Minute)
		r.Abandon()
		if err := <-result; !errors.Is(err, away) {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		equal(t, "busy", r.Busy(), false)
	})
}

// A COMMIT that was not answered may happen later: a resolver looks again for a while, and
// is not busy meanwhile.
func TestAResolverLooksAgainForALateCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := core.NewResolver(func() {})
		var calls atomic.Int64
		r.Look(func(context.Context) error { calls.Add(1); return nil }, func(error) {}, lease/2)
		synctest.Wait()
		equal(t, "calls at once", calls.Load(), 1)
		equal(t, "busy after the first answer", r.Busy(), false)
		pass(lease / 4)
		if n := calls.Load(); n < 5 {
			t.Errorf("it looked %d times within a quarter of the lease", n)
		}
		pass(lease)
		n := calls.Load()
		pass(lease)
		equal(t, "calls after the span", calls.Load(), n)
	})
}

// After an outage a worker leaves expired claims of others alone for a heartbeat's time,
// and does not spin meanwhile.
func TestAWorkerMayNotReapRightAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		w := table.worker(1)
		equal(t, "may reap", w.MayReap(), true)
		table.down = away
		for range 2 {
			if _, _, err := w.Next(context.Background()); err == nil {
				t.Fatal("the database answers")
			}
			pass(lease)
		}
		equal(t, "may reap while the database is away", w.MayReap(), false)
		table.down = nil
		wait, ok, err := w.Next(context.Background())
		noError(t, err)
		equal(t, "wait", fmt.Sprint(wait, ok), "100ms true")
		equal(t, "may reap before a write succeeded", w.MayReap(), false)
		_, err = w.Process(context.Background())
		noError(t, err)
		equal(t, "may reap at once", w.MayReap(), false)
		pass(lease / 5)
		equal(t, "may reap a heartbeat later", w.MayReap(), true)
	})
}

// Own claims are no crashes, and those of others wait if they must.
func TestExpiredClaimsAreSorted(t *testing.T) {
	t.Parallel()
	self := func(s string) string { return s }
	mine, others := core.Expired([]string{"a", "b", "a", "c"}, self, "a", true)
	equal(t, "claims", fmt.Sprint(mine, others), "[a a] [b c]")
	mine, others = core.Expired([]string{"a", "b", "a", "c"}, self, "a", false)
	equal(t, "claims", fmt.Sprint(mine, others), "[a a] []")
}
