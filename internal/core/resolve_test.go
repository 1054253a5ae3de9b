package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
)

// away is an error of a database that cannot be reached.
var away = &sqldb.Transient{Err: errors.New("connection lost")}

// A run that fails returns its claim: immediately if the database was away, and
// otherwise after a delay with the error. No crash is counted.
func TestARunThatFailsReturnsItsClaim(t *testing.T) {
	for _, c := range []struct {
		err   error
		least time.Duration
	}{
		{away, 0}, {&sqldb.Uncertain{Err: errors.New("lost")}, 0}, {&fault.Uncertain{Err: errors.New("lost")}, 0}, {core.ErrLost, 0},
		{errors.New("something odd"), 15 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			table := newTable(1)
			failed := false
			table.run = func(context.Context, string) error {
				if !failed {
					failed = true
					return c.err
				}
				return nil
			}
			w := table.worker(1)
			began := time.Now()
			_, err := w.Process(context.Background())
			noError(t, err)
			if c.least > 0 {
				done, _, _, _ := table.sums()
				equal(t, "done at once", done, 0)
				equal(t, "message", table.first().message, c.err.Error())
				pass(time.Until(table.first().due))
				_, err := w.Process(context.Background())
				noError(t, err)
			}
			if took := time.Since(began); took < c.least || took > 2*c.least {
				t.Errorf("after %v the work waited for %v, want %v to %v", c.err, took, c.least, 2*c.least)
			}
			done, _, crashes, _ := table.sums()
			equal(t, fmt.Sprintf("done after %v", c.err), done, 1)
			equal(t, "crashes", crashes, 0)
			noError(t, w.Drain(context.Background()))
		})
	}
}

// A claim that cannot be returned when its run ends is returned when the database
// answers, long before the lease ends. Drain waits for that.
func TestAClaimIsReturnedWhenTheDatabaseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		table.run = func(context.Context, string) error { return away }
		back := time.Now().Add(10 * time.Second)
		table.give = func() error {
			if time.Now().Before(back) {
				return away
			}
			return nil
		}
		w := table.worker(1)
		_, err := w.Start(context.Background())
		noError(t, err)
		synctest.Wait()
		equal(t, "held while the database is away", table.first().token != "", true)
		noError(t, w.Drain(context.Background()))
		equal(t, "held after a drain", table.first().token != "", false)
		if late := time.Since(back); late > 2*time.Second {
			t.Errorf("the claim was returned %v after the database was back", late)
		}
	})
}

// Drain does not wait longer than it may for claims that cannot be returned.
func TestDrainAbandonsWhatCannotBeReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		table.run = func(context.Context, string) error { return away }
		table.give = func() error { return away }
		w := table.worker(1)
		_, err := w.Process(context.Background())
		noError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := w.Drain(ctx); err == nil || err.Error() != "drain row: claims could not be returned" {
			t.Errorf("drain: %v", err)
		}
		equal(t, "drain took", time.Since(began), 7*time.Second)
	})
}

// A claim whose COMMIT was not answered is returned if it is stored, also if that is
// seen only later. The worker claims nothing before it has looked.
func TestAClaimWithoutAnAnswerIsReturned(t *testing.T) {
	for _, late := range []time.Duration{0, 100 * time.Millisecond, lease / 4} {
		synctest.Test(t, func(t *testing.T) {
			table := newTable(3)
			table.unanswered = &late
			w := table.worker(3)
			if _, err := w.Process(context.Background()); !sqldb.IsUncertain(err) {
				t.Fatalf("the error is %v", err)
			}
			pass(lease / 2)
			n, err := w.Process(context.Background())
			noError(t, err)
			equal(t, "runs", n, 3)
			_, _, crashes, returned := table.sums()
			equal(t, "crashes", crashes, 0)
			equal(t, "returned", returned, 3)
			noError(t, w.Drain(context.Background()))
		})
	}
}

// A worker claims nothing while it does not know what its last claim holds.
func TestAWorkerResolvesAClaimBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		table.unanswered = new(time.Duration)
		table.give = func() error { return away }
		w := table.worker(1)
		for range 3 {
			if _, err := w.Process(context.Background()); !sqldb.IsUncertain(err) {
				t.Fatalf("the error is %v", err)
			}
		}
		equal(t, "claims", table.count("claim"), 1)
		table.mu.Lock()
		table.give = nil
		table.mu.Unlock()
		pass(2 * time.Second)
		n, err := w.Process(context.Background())
		noError(t, err)
		equal(t, "runs", n, 1)
		noError(t, w.Drain(context.Background()))
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
