package fsm_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/faultproxy"
	"github.com/perdure/perdure/internal/test/testdb"
)

// driven is a live fixture with a dispatcher, whose errors are expected.
func driven(t *testing.T, db enginetest.Database, c clock.Clock, options *fsm.Options, definitions ...fsm.Definer) *fixture {
	t.Helper()
	o := fsm.Options{}
	if options != nil {
		o = *options
	}
	if o.Lease == 0 {
		o.Lease = 2 * time.Second
	}
	o.MaxCrashes = 1 << 30
	o.OnCrash = func(perdure.Crash) {}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	f := liveOn(t, db, c, &o, definitions...)
	alarm, err := dispatch.NewWaker(f, &dispatch.WakerOptions{MaxSleep: 200 * time.Millisecond, Clock: c, OnError: func(error) {}})
	enginetest.NoError(t, err)
	alarm.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
		defer cancel()
		_ = alarm.Stop(ctx)
	})
	return f
}

// mixture is a machine of several steps, with a wait and a fan-out, that counts its
// effects.
func mixture(effects *tally) *fsm.Definition[int] {
	counted := func(name string, fn func(r run) fsm.Outcome) fsm.StepOf[int] {
		return fsm.Step(name, func(ctx context.Context, r run) (fsm.Outcome, error) {
			effects.add(r.ID + " " + name)
			pause(ctx, time.Millisecond)
			return fn(r), ctx.Err()
		}, nil)
	}
	return fsm.Define("mixture", 1, nil,
		counted("first", func(r run) fsm.Outcome { r.State++; return r.Next("second") }),
		counted("second", func(r run) fsm.Outcome { r.State++; return r.Await("go").Then("third").Within(20 * time.Millisecond) }),
		counted("third", func(r run) fsm.Outcome { r.State++; return r.Spawn(leaves(1, 3)...).Then("fourth") }),
		counted("fourth", func(r run) fsm.Outcome { r.State++; return r.Done(r.State) }),
	)
}

// endure starts instances while the faults go on, and then checks that all that was
// acknowledged ends well.
func (f *fixture) endure(d *fsm.Definition[int], effects *tally, faults func()) {
	f.t.Helper()
	t := f.t
	over := make(chan struct{})
	var ids []string
	var starting sync.WaitGroup
	starting.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			default:
			}
			if started, err := fsm.Start(context.Background(), f.eng, d, 0, nil); err == nil {
				ids = append(ids, started.ID)
			}
			pause(t.Context(), 2*time.Millisecond)
		}
	})
	faults()
	close(over)
	starting.Wait()
	for _, id := range ids {
		if got := f.ends(id, fsm.Done); string(got.Result) != "4" {
			t.Errorf("instance %s ended with %s", id, got.Result)
		}
		for _, step := range []string{"first", "second", "third", "fourth"} {
			if effects.of(id+" "+step) == 0 {
				t.Errorf("instance %s ended without its step %s", id, step)
			}
		}
	}
	if len(ids) < 5 {
		t.Errorf("only %d were started: nothing was proven", len(ids))
	}
	enginetest.Eventually(t, "all has ended", func() bool {
		live, _, err := f.List(t.Context(), fsm.Filter{Live: true}, "", 1)
		return err == nil && len(live) == 0
	})
	sound(t, f.eng)
	t.Logf("%d instances", len(ids))
}

// A server is restarted in order, and then as after a crash, under load (times
// PERDURE_SOAK).
func TestCase22ARestartOfTheServer(t *testing.T) {
	t.Parallel()
	for name, private := range map[string]func(testing.TB) *testdb.Server{enginetest.Postgres: testdb.PrivatePostgres, enginetest.MySQL: testdb.PrivateMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := private(t)
			var effects tally
			d := mixture(&effects)
			f := driven(t, enginetest.Database{Name: name, DSN: server.Database(t)}, clock.System, nil, d, leaf)
			f.endure(d, &effects, func() {
				for range rounds(1) {
					pause(t.Context(), 300*time.Millisecond)
					enginetest.NoError(t, server.Restart())
					pause(t.Context(), 300*time.Millisecond)
					enginetest.NoError(t, server.Kill())
					enginetest.NoError(t, server.Restart())
				}
				pause(t.Context(), 300*time.Millisecond)
			})
		})
	}
}

// Connections are ended by the server at random, five a second for 3 s (the notes:
// 60), times PERDURE_SOAK.
func TestCase23ConnectionsEndAtRandom(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			var effects tally
			d := mixture(&effects)
			f := driven(t, db, clock.System, nil, d, leaf)
			f.endure(d, &effects, func() {
				for range rounds(15) {
					pause(t.Context(), 200*time.Millisecond)
					f.terminate(1)
				}
			})
		})
	}
}

// The connection is cut when COMMIT was sent: whatever became of it, the outcome is
// applied once, and a step that was committed does not run again.
func TestCase24TheAnswerToCommitIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(*faultproxy.Proxy, string) <-chan struct{}
		first int
	}{"Answer": {(*faultproxy.Proxy).LoseAnswer, 1}, "Message": {(*faultproxy.Proxy).LoseMessage, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through, proxy := behindProxy(t, enginetest.New(t, enginetest.Postgres))
			u, err := url.Parse(through.DSN)
			enginetest.NoError(t, err)
			q := u.Query()
			q.Set("default_query_exec_mode", "exec") // so that the proxy can read it
			u.RawQuery = q.Encode()
			through.DSN = u.String()
			var effects tally
			var once sync.Once
			d := fsm.Define("cut", 1, nil,
				fsm.Step("first", func(_ context.Context, r run) (fsm.Outcome, error) {
					effects.add("first")
					once.Do(func() { c.lose(proxy, "set step = o.step") }) // the outcome, which COMMIT is sent with
					return r.Next("second"), nil
				}, nil),
				fsm.Step("second", func(_ context.Context, r run) (fsm.Outcome, error) {
					effects.add("second")
					return r.Done(nil), nil
				}, nil),
			)
			f := driven(t, through, clock.System, nil, d)
			id := start(f, d, 0, nil)
			f.ends(id, fsm.Done)
			if effects.of("first") != c.first || effects.of("second") != 1 {
				t.Errorf("the steps ran %d and %d times, want %d and 1", effects.of("first"), effects.of("second"), c.first)
			}
			sound(t, f.eng)
		})
	}
}

// The connection that listens is ended: work of other processes is found by
// polling, and the listener comes back.
func TestCase25TheListenerIsEnded(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	f := driven(t, db, clock.System, nil, leaf)
	other := live(t, db, nil)
	listeners := func() int64 {
		return db.Int(t, "select count(*) from pg_stat_activity where datname = current_database() and query = 'listen perdure'")
	}
	enginetest.Eventually(t, "it listens", func() bool { return listeners() > 0 })
	f.ends(start(other, leaf, 1, nil), fsm.Done)
	db.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query = 'listen perdure'")
	f.ends(start(other, leaf, 1, nil), fsm.Done)
	enginetest.Eventually(t, "it listens again", func() bool { return listeners() > 0 })
	f.ends(start(other, leaf, 1, nil), fsm.Done)
}

// The database's own settings do not matter: transactions say what they need.
func TestCase26ADatabaseThatIsSerializableByDefault(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	name := db.Text(t, "select current_database()")
	db.Exec(t, fmt.Sprintf("alter database %s set default_transaction_isolation = 'serializable'", name))
	var effects tally
	d := mixture(&effects)
	f := driven(t, db, clock.System, nil, d, leaf)
	driven(t, db, clock.System, nil, d, leaf)
	f.endure(d, &effects, func() { pause(t.Context(), time.Second) })
}

// Nothing is kept in a session, so a pooler that gives every transaction another
// one may stand in between: no prepared statements if asked so, no advisory locks,
// no temporary tables.
func TestCase27NothingIsKeptInASession(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	pooled := enginetest.Database{Name: db.Name, DSN: testdb.Pooler(t, db.DSN, testdb.PoolTransactions) + "&pool_max_conns=3"}
	var effects tally
	d := mixture(&effects)
	f := driven(t, pooled, clock.System, nil, d, leaf)
	f.endure(d, &effects, func() {
		for range 10 {
			pause(t.Context(), 50*time.Millisecond)
			if n := db.Int(t, "select count(*) from pg_locks l join pg_database d on d.oid = l.database where locktype = 'advisory' and datname = current_database()"); n != 0 {
				t.Errorf("%d advisory locks", n)
			}
		}
	})
}

// The clock of the application is an hour behind or ahead of the server's: delays
// and leases are as long as they should be.
func TestCase29TheClocksDisagree(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		eachServer(t, name, func(t *testing.T, db enginetest.Database) {
			var runs counter
			d := machine("slow", func(ctx context.Context, r run) (fsm.Outcome, error) {
				runs.add()
				pause(ctx, 1500*time.Millisecond) // longer than half its lease
				return r.Done(nil), ctx.Err()
			})
			f := driven(t, db, clock.Skewed(skew), nil, d, leaf)
			driven(t, db, clock.System, nil, d, leaf) // would take over what has expired
			began := clock.System.Now()
			late := start(f, leaf, 1, &fsm.StartOptions{Delay: 400 * time.Millisecond})
			slow := start(f, d, 1, nil)
			f.ends(late, fsm.Done)
			if took := clock.System.Now().Sub(began); took < 400*time.Millisecond {
				t.Errorf("a delay of 400 ms took %v", took)
			}
			f.ends(slow, fsm.Done)
			runs.is(t, "executions", 1)
		})
	}
}

// A database that refuses to write: errors are reported, and everything goes on
// when it writes again.
func TestCase30ADatabaseThatDoesNotWrite(t *testing.T) {
	t.Parallel()
	t.Run(enginetest.Postgres, func(t *testing.T) {
		t.Parallel()
		db := enginetest.New(t, enginetest.Postgres)
		var effects tally
		var errs counter
		d := mixture(&effects)
		f := driven(t, db, clock.System, &fsm.Options{OnError: func(error) { errs.add() }}, d, leaf)
		admin := enginetest.Database{Name: db.Name, DSN: db.DSN + "&default_transaction_read_only=off"}
		name := db.Text(t, "select current_database()")
		set := func(value string) {
			admin.Exec(t, fmt.Sprintf("alter database %s set default_transaction_read_only = %s", name, value))
			admin.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		}
		f.endure(d, &effects, func() {
			pause(t.Context(), 300*time.Millisecond)
			set("on")
			pause(t.Context(), 300*time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := fsm.Start(ctx, f.eng, leaf, 1, nil); err == nil {
				t.Error("a database that is read-only took a start")
			}
			set("off")
			pause(t.Context(), 300*time.Millisecond)
		})
	})
	t.Run(enginetest.SQLite, func(t *testing.T) {
		t.Parallel()
		db, cut, heal := lockOut(t, enginetest.New(t, enginetest.SQLite))
		var effects tally
		d := mixture(&effects)
		f := driven(t, db, clock.System, nil, d, leaf)
		f.endure(d, &effects, func() {
			pause(t.Context(), 300*time.Millisecond)
			cut()
			pause(t.Context(), time.Second)
			heal()
			pause(t.Context(), 300*time.Millisecond)
		})
	})
}

// Case 65 is every test that runs on SQLite, and TestKilledProcessesLoseNothing.
// Case 66: what was acknowledged is in the files at that moment. That they are also
// synced is shown, for every commit through the driver, by the power-loss tests of
// internal/test/torture.
func TestCase66AcknowledgedOutcomesAreInTheFiles(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.SQLite)
	f := driven(t, db, clock.System, nil, leaf)
	for range 10 {
		id := start(f, leaf, 1, nil)
		f.ends(id, fsm.Done)
		copied := enginetest.Database{Name: enginetest.SQLite, DSN: "sqlite:" + copyFiles(t, strings.TrimPrefix(db.DSN, "sqlite:"))}
		eng, err := perdure.Open(t.Context(), copied.DSN, nil)
		enginetest.NoError(t, err)
		machines, err := fsm.New(eng, nil)
		enginetest.NoError(t, err)
		if got, err := machines.Get(t.Context(), id); err != nil || got.Status != fsm.Done {
			t.Errorf("in the copy it is %s, %v", got.Status, err)
		}
		enginetest.NoError(t, eng.Close())
	}
}

// copyFiles copies a database and its log, as they are.
func copyFiles(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"-wal", ""} { // the log first: what is moved out of it meanwhile is in both
		from, err := os.Open(path + suffix)
		enginetest.NoError(t, err)
		file, err := os.Create(to + suffix)
		enginetest.NoError(t, err)
		_, err = io.Copy(file, from)
		enginetest.NoError(t, err)
		enginetest.NoError(t, file.Close())
		_ = from.Close()
	}
	return to
}

// Two processes share a SQLite file: each instance runs in one of them. (With real
// processes: TestKilledProcessesLoseNothing.)
func TestCase67TwoProcessesShareAFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.SQLite), nil)
	other := f.beside(f.clock, nil)
	var runs tally
	d := machine("shared", func(_ context.Context, r run) (fsm.Outcome, error) {
		runs.add(r.ID)
		return r.Done(nil), nil
	})
	f.register(d)
	other.register(d)
	var all []fsm.Started
	for range 10 {
		started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 20), nil)
		enginetest.NoError(t, err)
		all = append(all, started...)
		race(func() { f.drain() }, func() { other.drain() })
	}
	for _, s := range all {
		f.wantStatus(s.ID, fsm.Done)
		if n := runs.of(s.ID); n != 1 {
			t.Errorf("%s ran %d times", s.ID, n)
		}
	}
}
