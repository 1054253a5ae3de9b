package kinds

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// insert adds a row to a table that has no unique key.
func insert(tx *perdure.Tx) error {
	_, err := tx.Exec("insert into written (n) values (1)")
	return err
}

// adds runs test for each kind of work that can commit rows with its outcome.
func adds(t *testing.T, test func(t *testing.T, f *fixture)) {
	each(t, and("sender", sender), func(t *testing.T, db enginetest.Database, k kind) {
		db.Exec(t, "create table written (n integer not null check (n < 10))")
		f := &fixture{t: t, db: db, kind: k, clock: perduretest.NewClock(start)}
		f.eng = f.open()
		test(t, f)
	})
}

type fixture struct {
	t     *testing.T
	db    enginetest.Database
	kind  kind
	clock *perduretest.Clock
	eng   *perdure.Engine
}

func (f *fixture) open() *perdure.Engine { return f.db.Open(f.t, &perdure.Options{Clock: f.clock}) }

// start starts a work item that may have three attempts, a minute apart.
func (f *fixture) start(s subject) dispatch.Processor {
	s.t, s.policy = f.t, retry.Fixed(3, time.Minute)
	if s.eng == nil {
		s.eng = f.eng
	}
	return f.kind.start(s)
}

func (f *fixture) wantRows(want int64) {
	f.t.Helper()
	if got := f.rows(); got != want {
		f.t.Errorf("%d rows were committed, want %d", got, want)
	}
}

func (f *fixture) rows() int64 {
	f.t.Helper()
	return f.db.Int(f.t, "select count(*) from written")
}

func ok(context.Context, int) error { return nil }

func TestRowsCommitWithTheOutcome(t *testing.T) {
	adds(t, func(t *testing.T, f *fixture) {
		runs := 0
		p := f.start(subject{add: insert, run: func(context.Context, int) error {
			runs++
			f.wantRows(0)
			return nil
		}})
		runAll(t, f.clock, p)
		if f.wantRows(1); runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

func TestTheRowsOfAFailedAttemptDoNotCommit(t *testing.T) {
	adds(t, func(t *testing.T, f *fixture) {
		p := f.start(subject{add: insert, run: func(_ context.Context, attempt int) error {
			if attempt < 3 {
				return retry.After(time.Minute, errors.New("declined")) // also for a sender, whose plain errors are outcomes
			}
			return nil
		}})
		runAll(t, f.clock, p)
		f.wantRows(1)
	})
}

// A function that fails rolls the outcome back with it. The attempt has failed, and
// its error decides as every error does.
func TestAFunctionThatFailsFailsTheAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail func(tx *perdure.Tx) error
		runs int
		rows int64
	}{
		"error":           {func(*perdure.Tx) error { return errors.New("no receipt") }, 2, 1},
		"panic":           {func(*perdure.Tx) error { panic("no receipt") }, 2, 1},
		"refused":         {func(tx *perdure.Tx) error { _, err := tx.Exec("insert into written (n) values (99)"); return err }, 2, 1},
		"refused, hidden": {func(tx *perdure.Tx) error { _, _ = tx.Exec("insert into written (n) values (99)"); return nil }, 2, 1},
		"stop":            {func(*perdure.Tx) error { return fmt.Errorf("pay: %w", retry.Stop(errors.New("no receipt"))) }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			adds(t, func(t *testing.T, f *fixture) {
				runs, failed := 0, false
				p := f.start(subject{run: func(context.Context, int) error { runs++; return nil }, add: func(tx *perdure.Tx) error {
					if err := insert(tx); err != nil || failed {
						return err
					}
					failed = true
					return c.fail(tx)
				}})
				runAll(t, f.clock, p)
				if f.wantRows(c.rows); runs != c.runs {
					t.Errorf("it ran %d times, want %d", runs, c.runs)
				}
			})
		})
	}
}

// A handler that was stopped beyond its lease comes back when another one has done the
// work. Its rows are not committed.
func TestTheRowsOfALostClaimDoNotCommit(t *testing.T) {
	adds(t, func(t *testing.T, f *fixture) {
		begun, release := make(chan struct{}), make(chan struct{})
		var runs atomic.Int32
		first := f.start(subject{add: insert, run: func(context.Context, int) error {
			if runs.Add(1) == 1 {
				close(begun)
				<-release
			}
			return nil
		}})
		stopped := make(chan error, 1)
		go func() {
			_, err := first.Process(context.Background())
			stopped <- err
		}()
		<-begun
		f.db.Exec(t, fmt.Sprintf("update %s set %s = %s where %s is not null", f.db.Table(f.kind.schema, f.kind.table), f.kind.lease, f.kind.since, f.kind.lease))
		second := f.start(subject{eng: f.open(), joins: true, add: insert, run: ok})
		// The first process still looks for expired leases: if it finds this one before the
		// second does, it may also claim the work again.
		enginetest.Eventually(t, "the work is done", func() bool {
			runAll(t, f.clock, second)
			return f.rows() > 0
		})
		f.wantRows(1)
		close(release)
		enginetest.NoError(t, <-stopped)
		f.wantRows(1)
	})
}

func TestFunctionsAreAddedOnlyByRunningHandlers(t *testing.T) {
	invalid := func(t *testing.T, err error) {
		t.Helper()
		enginetest.As[*fault.Invalid](t, err)
	}
	invalid(t, perdure.CommitWith(t.Context(), insert))
	adds(t, func(t *testing.T, f *fixture) {
		var handler context.Context
		p := f.start(subject{run: func(ctx context.Context, _ int) error {
			handler = ctx
			return nil
		}})
		runAll(t, f.clock, p)
		invalid(t, perdure.CommitWith(handler, insert))
		invalid(t, perdure.CommitWith(handler, nil))
		f.wantRows(0)
	})
}
