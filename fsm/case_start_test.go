package fsm_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A start is part of the unit of work that it is recorded in, whoever's
// transaction that is.
func TestCase62AStartIsPartOfItsUnit(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		sorry := errors.New("sorry")
		record := func(tx *perdure.Tx) error {
			_, err := fsm.StartIn(tx, leaf, 1, &fsm.StartOptions{Unique: "u", Partition: "p", Deadline: time.Hour})
			return err
		}
		err := f.eng.Update(t.Context(), func(tx *perdure.Tx) error { return errors.Join(record(tx), sorry) })
		enginetest.Is(t, err, sorry)
		err = f.eng.Update(t.Context(), func(tx *perdure.Tx) error { return errors.Join(record(tx), host.In(tx).Flush(), sorry) })
		enginetest.Is(t, err, sorry)
		rolled := func(commit bool) {
			tx, err := f.db.SQL(t).BeginTx(t.Context(), nil)
			enginetest.NoError(t, err)
			enginetest.NoError(t, f.eng.JoinSQL(t.Context(), tx, record))
			if commit {
				enginetest.NoError(t, tx.Commit())
			} else {
				enginetest.NoError(t, tx.Rollback())
			}
		}
		rolled(false)
		if f.db.Name == enginetest.Postgres {
			joinPgx(t, f, record, false)
		}
		if n := f.drain(); n != 0 {
			t.Errorf("%d ran of what was rolled back", n)
		}
		for _, table := range []string{"instances", "ready", "uniques", "partition_heads", "deadlines"} {
			f.wantRows(table, 0)
		}
		rolled(true)
		if n := f.drain(); n != 1 {
			t.Errorf("%d ran of what was committed", n)
		}
		if f.db.Name == enginetest.Postgres {
			joinPgx(t, f, record, true)
			if n := f.drain(); n != 1 {
				t.Errorf("%d ran of what was committed through pgx", n)
			}
		}
	})
}

func joinPgx(t *testing.T, f *fixture, fn func(*perdure.Tx) error, commit bool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), f.db.DSN)
	enginetest.NoError(t, err)
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.eng.JoinPgx(t.Context(), tx, fn))
	if commit {
		enginetest.NoError(t, tx.Commit(t.Context()))
		return
	}
	enginetest.NoError(t, tx.Rollback(t.Context()))
}

// A bulk start of 5,000 (the notes: 100,000; times PERDURE_SOAK) knows no limit of
// parameters, and all of them run.
func TestCase63ABulkStart(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		n := rounds(5000)
		f.register(leaf)
		started, err := fsm.StartMany(t.Context(), f.eng, leaf, make([]int, n), nil)
		if err != nil || len(started) != n {
			t.Fatalf("%d started, %v", len(started), err)
		}
		if ran := f.drain(); ran != n {
			t.Errorf("%d ran, want %d", ran, n)
		}
		f.wantRows("finished", int64(n))
		f.wantRows("leases", 0)
	})
}

// watched counts what a dispatcher asks of its processor.
type watched struct {
	*fsm.Machines
	runs, wakes counter
}

func (c *watched) Start(ctx context.Context) (int, error) {
	c.runs.add()
	return c.Machines.Start(ctx)
}

func (c *watched) NextWakeAt(ctx context.Context) (time.Time, error) {
	c.wakes.add()
	return c.Machines.NextWakeAt(ctx)
}

// An empty queue for ten minutes: at most two looks a minute, each of one
// transaction.
func TestCase64AnEmptyQueueCostsLittle(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		f.register(leaf)
		c := &watched{Machines: f.Machines}
		alarm, err := dispatch.NewWaker(c, &dispatch.WakerOptions{Clock: f.clock})
		enginetest.NoError(t, err)
		alarm.Start()
		for range 10 {
			enginetest.Eventually(t, "it sleeps", func() bool { return f.clock.Timers() == 1 })
			f.clock.Advance(time.Minute)
		}
		enginetest.Eventually(t, "it sleeps", func() bool { return f.clock.Timers() == 1 })
		enginetest.NoError(t, alarm.Stop(enginetest.Context(t)))
		if n := c.runs.n.Load() + c.wakes.n.Load(); n > 25 {
			t.Errorf("%d runs and %d looks in ten minutes", c.runs.n.Load(), c.wakes.n.Load())
		}
	})
}

// Lists are narrowed, and paged without gaps or repetitions.
func TestListsAreNarrowedAndPaged(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		other := machine("other", done, with{Queue: "apart"})
		f.register(leaf)
		var all []string
		for i := range 7 {
			all = append(all, start(f, leaf, i, nil))
		}
		apart := start(f, other, 1, nil)
		f.drain()
		for _, c := range []struct {
			filter fsm.Filter
			want   int
		}{
			{fsm.Filter{}, 8},
			{fsm.Filter{Definition: "leaf"}, 7},
			{fsm.Filter{Queue: "apart"}, 1},
			{fsm.Filter{Live: true}, 1},
			{fsm.Filter{Finished: []fsm.Status{fsm.Done}}, 6},
			{fsm.Filter{Finished: []fsm.Status{fsm.Stopped, fsm.Quarantined}}, 1},
			{fsm.Filter{Definition: "leaf", Live: true}, 0},
			{fsm.Filter{Definition: "none"}, 0},
			{fsm.Filter{Parent: apart}, 0},
		} {
			got, next, err := f.List(t.Context(), c.filter, "", 0)
			if err != nil || len(got) != c.want || next != "" {
				t.Errorf("%+v: %d instances, next %q, %v, want %d", c.filter, len(got), next, err, c.want)
			}
		}
		var paged []string
		for cursor := ""; ; {
			page, next, err := f.List(t.Context(), fsm.Filter{Definition: "leaf"}, cursor, 3)
			enginetest.NoError(t, err)
			for _, i := range page {
				paged = append(paged, i.ID)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		slices.Reverse(all)
		if diff := cmp.Diff(all, paged); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
		for _, c := range []struct {
			filter fsm.Filter
			cursor string
			limit  int
		}{{cursor: "x"}, {filter: fsm.Filter{Parent: "x"}}, {limit: -1}, {limit: 100_000}, {filter: fsm.Filter{Finished: []fsm.Status{fsm.Running}}}} {
			_, _, err := f.List(t.Context(), c.filter, c.cursor, c.limit)
			enginetest.As[*fault.Invalid](t, err)
		}
	})
}

// Wait returns with the end, or with the end of the caller's patience.
func TestWaitReturnsWithTheEnd(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parker("waited for", "go")
			f := live(t, enginetest.New(t, name), nil, d)
			id := start(f, d, 0, nil)
			f.drain()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := f.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want that of the context", err)
			}
			race(func() { f.send(id, "go", nil); f.drain() }, func() {
				if got, err := f.Wait(t.Context(), id); err != nil || string(got.Result) != "1" {
					t.Errorf("%s, %v", got.Result, err)
				}
			})
			_, err := f.Wait(t.Context(), "00000000-0000-0000-0000-000000000000")
			enginetest.As[*fault.NotFound](t, err)
		})
	}
}
