package fsm_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// open sends a signal to an instance in a unit that stays open until commit is called. On
// MySQL, a transaction with a stricter isolation level would also lock the gaps between
// rows, and so other instances.
func (f *fixture) open(id string) (commit func()) {
	f.t.Helper()
	tx, err := f.db.SQL(f.t).BeginTx(f.t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	enginetest.NoError(f.t, err)
	enginetest.NoError(f.t, f.eng.JoinSQL(f.t.Context(), tx, func(tx *perdure.Tx) error {
		_, err := fsm.SendIn(tx, id, "news", nil, nil)
		return err
	}))
	return func() {
		f.t.Helper()
		enginetest.NoError(f.t, tx.Commit())
	}
}

// runOthers runs other instances to their end. It returns what waits for the end of
// the processing, which may wait for the locked instance.
func (f *fixture) runOthers(d *fsm.Definition[int]) (wait func()) {
	f.t.Helper()
	var waits []func()
	for range 3 {
		id := start(f, d, 7, nil)
		waits = append(waits, f.begin())
		enginetest.Eventually(f.t, "another instance is done", func() bool { return f.get(id).Status == fsm.Done })
	}
	return func() {
		f.t.Helper()
		for _, wait := range waits {
			wait()
		}
	}
}

// A unit that has sent a signal and stays open locks its instance. Only that instance
// waits for the unit: outcomes of other instances are committed, timeouts pass, and the
// work of lost processes is taken over. No step runs again because of it.
func TestAnOpenUnitHoldsUpOnlyItsInstance(t *testing.T) {
	t.Parallel()
	other := machine("other", done)
	// Each case returns the locked instance, the end of the unit, and what must be done
	// after it.
	for name, test := range map[string]func(f *fixture) (id string, commit, after func()){
		"Outcome": func(f *fixture) (string, func(), func()) {
			var ran counter
			g := newGate(f.t)
			d := fsm.Define("busy", 1, nil,
				fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
					ran.add()
					g.pass(r.ID)
					return r.Next("second"), nil
				}, nil),
				fsm.Step("second", done, nil),
			)
			f.register(d)
			id := start(f, d, 1, nil)
			wait := f.begin()
			g.await(f.t)
			commit := f.open(id)
			g.release()
			return id, commit, func() { wait(); ran.is(f.t, "runs of the first step", 1) }
		},
		"Join": func(f *fixture) (string, func(), func()) {
			var ran counter
			g := newGate(f.t)
			child := machine("child", func(_ context.Context, r run) (fsm.Outcome, error) {
				ran.add()
				g.pass(r.ID)
				return r.Done(nil), nil
			})
			d := fsm.Define("parent", 1, nil,
				fsm.Step("fan", always(func(r run) fsm.Outcome {
					return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, nil), fsm.ChildOf(child, 3, nil)).Then("join")
				}), nil),
				fsm.Step("join", done, nil),
			)
			f.register(d, child)
			id := start(f, d, 1, nil)
			wait := f.begin()
			for range 3 {
				g.await(f.t)
			}
			commit := f.open(id)
			g.release()
			return id, commit, func() { wait(); f.drain(); ran.is(f.t, "runs of children", 3) }
		},
		"Timeout": func(f *fixture) (string, func(), func()) {
			child := parker("child", "never")
			d := fsm.Define("parent", 1, nil,
				fsm.Step("fan", always(func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(child, 1, nil)).Then("join").Within(minute) }), nil),
				fsm.Step("join", done, nil),
			)
			f.register(d, child)
			id := start(f, d, 1, nil)
			f.drain()
			commit := f.open(id)
			f.clock.Advance(2 * minute)
			return id, commit, func() { f.drain() }
		},
		"Crash": func(f *fixture) (string, func(), func()) {
			dead := newGate(f.t)
			d := machine("lost", func(_ context.Context, r run) (fsm.Outcome, error) {
				if r.Crashes == 0 {
					dead.pass(r.ID)
				}
				return r.Done(r.State), nil
			})
			id := start(f, d, 1, nil)
			f.crash(1, 1, dead, d, fsm.Options{})
			commit := f.open(id)
			f.register(d)
			return id, commit, func() { f.drain(); dead.release() }
		},
	} {
		for _, database := range []string{enginetest.Postgres, enginetest.MySQL} {
			t.Run(name+"/"+database, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, enginetest.New(t, database), &fsm.Options{
					OnError: func(err error) { t.Error("an error without a caller:", err) }, OnCrash: func(perdure.Crash) {},
				})
				f.register(other)
				id, commit, after := test(f)
				wait := f.runOthers(other)
				commit()
				wait()
				after()
				f.wantResult(id, "1")
			})
		}
	}
}

// A unit joins a transaction of the application that has read before the instance began to
// wait. On MySQL such a transaction goes on reading the state of that time. The signal
// wakes the instance all the same, and an instance that has ended since takes no more.
func TestAUnitInAnOlderTransactionSignals(t *testing.T) {
	each(t, func(f *fixture) {
		if f.db.Name == enginetest.SQLite {
			return // its transactions that write have no older state
		}
		t := f.t
		d := parker("waiter", "news")
		f.register(d)
		id := start(f, d, 1, nil)
		older := func() error {
			tx, err := f.db.SQL(t).BeginTx(t.Context(), nil)
			enginetest.NoError(t, err)
			var n int
			enginetest.NoError(t, tx.QueryRowContext(t.Context(), "select count(*) from "+f.table("waiting")).Scan(&n))
			f.drain()
			err = f.eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error {
				_, err := fsm.SendIn(tx, id, "news", nil, nil)
				return err
			})
			if err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		}
		enginetest.NoError(t, older())
		refused(t, older(), true)
		f.wantResult(id, "1")
	})
}
