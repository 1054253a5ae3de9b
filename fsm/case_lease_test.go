package fsm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/faultproxy"
)

// The database cannot be reached for longer than a lease: the context of the step
// ends before others may take over.
func TestCase15AStepEndsBeforeItsLeaseDoes(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Second
	for name, block := range map[string]func(t *testing.T, db enginetest.Database) (through enginetest.Database, cut, heal func()){
		enginetest.SQLite:   lockOut,
		enginetest.Postgres: swallow,
		enginetest.MySQL:    swallow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, cut, heal := block(t, enginetest.New(t, name))
			began := make(chan time.Time, 1)
			ended := make(chan error, 1)
			d := machine("cut off", func(ctx context.Context, _ run) (fsm.Outcome, error) {
				began <- clock.System.Now()
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return fsm.Outcome{}, ctx.Err()
			})
			f := live(t, db, &fsm.Options{Lease: lease, OnError: func(error) {}}, d)
			start(f, d, 0, nil)
			if _, err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			from := <-began
			cut()
			if cause := <-ended; !errors.Is(cause, core.ErrLost) {
				t.Errorf("the context ended with %v", cause)
			}
			if took := clock.System.Now().Sub(from); took > lease {
				t.Errorf("the step had its context for %v, longer than its lease", took)
			}
			heal()
		})
	}
}

// lockOut takes SQLite's write lock and keeps it.
func lockOut(t *testing.T, db enginetest.Database) (through enginetest.Database, cut, heal func()) {
	t.Helper()
	conn, err := db.SQL(t).Conn(t.Context())
	enginetest.NoError(t, err)
	return db, func() {
			_, err = conn.ExecContext(t.Context(), "begin immediate")
			enginetest.NoError(t, err)
		}, func() {
			_, err := conn.ExecContext(t.Context(), "rollback")
			enginetest.NoError(t, errors.Join(err, conn.Close()))
		}
}

// swallow stands between and passes nothing on until it is healed. The database comes
// back because the machines, when they are drained, wait for it.
func swallow(t *testing.T, db enginetest.Database) (through enginetest.Database, cut, heal func()) {
	t.Helper()
	through, proxy := behindProxy(t, db)
	return through, proxy.Swallow, proxy.Heal
}

// behindProxy returns the database as it is reached through a proxy.
func behindProxy(t *testing.T, db enginetest.Database) (enginetest.Database, *faultproxy.Proxy) {
	t.Helper()
	u, err := url.Parse(db.DSN)
	enginetest.NoError(t, err)
	proxy, err := faultproxy.Start(net.JoinHostPort(u.Hostname(), u.Port()))
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	u.Host = proxy.Addr()
	return enginetest.Database{Name: db.Name, DSN: u.String()}, proxy
}

// Cases 16 and 17: a hundred claims run five times as long as their lease, beside
// a process that would take them over. Each runs once.
func TestCase16And17HeartbeatsKeepClaimsAlive(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		const n = 100
		var runs tally
		slow := newGate(t)
		d := machine("slow", func(_ context.Context, r run) (fsm.Outcome, error) {
			runs.add(r.ID)
			slow.pass(r.ID)
			return r.Done(nil), nil
		})
		f.register(d)
		other := f.beside(f.clock, nil)
		other.register(d)
		started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, n), nil)
		enginetest.NoError(t, err)
		wait := f.begin()
		for range n {
			slow.await(t)
		}
		const lease = 30 * time.Second
		for range 25 { // each a fifth of the lease
			f.clock.Advance(lease / 5)
			enginetest.Eventually(t, "the lease is renewed", func() bool { return f.leaseEnd().Equal(f.clock.Now().Add(lease)) })
			if claimed, err := other.Process(t.Context()); err != nil || claimed != 0 {
				t.Fatalf("another process claimed %d: %v", claimed, err)
			}
		}
		slow.release()
		wait()
		for _, s := range started {
			f.wantStatus(s.ID, fsm.Done)
			if runs.of(s.ID) != 1 {
				t.Errorf("instance %s ran %d times", s.ID, runs.of(s.ID))
			}
		}
	})
}

// A process that is told to stop gives back what has not ended, at once and at no
// cost.
func TestCase18StoppingReleasesAtNoCost(t *testing.T) {
	eachWith(t, fsm.Options{OnError: func(err error) { panic(err) }}, func(f *fixture) {
		t := f.t
		const n = 50
		arrived := make(chan struct{}, n)
		var runs counter
		d := machine("patient", func(ctx context.Context, r run) (fsm.Outcome, error) {
			if runs.add() > n {
				return r.Done([]int{r.Attempt, r.Crashes}), nil
			}
			arrived <- struct{}{}
			<-ctx.Done()
			return fsm.Outcome{}, ctx.Err()
		})
		f.register(d)
		started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, n), nil)
		enginetest.NoError(t, err)
		wait := f.begin()
		for range n {
			<-arrived
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		enginetest.NoError(t, f.Drain(ctx))
		wait()
		f.wantRows("leases", 0)
		next := f.other(nil) // its clock stands still: no lease runs out
		next.register(d)
		if ran := next.drain(); ran != n {
			t.Errorf("%d were there for the next process, want %d", ran, n)
		}
		for _, s := range started {
			f.wantResult(s.ID, "[1,0]")
		}
	})
}

// Reapers, heartbeats and outcomes of four processes at once, with leases that run
// out now and then: no deadlock, and nothing is lost. It runs for 2 s (the notes:
// 60), times PERDURE_SOAK.
func TestCase20ReapersHeartbeatsAndOutcomesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			d := fsm.Define("busy", 1, nil,
				fsm.Step("work", func(ctx context.Context, r run) (fsm.Outcome, error) {
					pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
					if r.State++; r.State == 4 {
						return r.Done(nil), nil
					}
					return []fsm.Outcome{r.Next("work"), r.Replay(0), r.Spawn(fsm.ChildOf(leaf, 1, nil)).Then("work")}[rand.IntN(3)], nil
				}, nil),
			)
			var all []*fixture
			for range 4 {
				f := live(t, db, &fsm.Options{Lease: time.Second, MaxCrashes: 1 << 30, OnCrash: func(perdure.Crash) {}, OnError: func(error) {}}, d, leaf)
				alarm, err := dispatch.NewWaker(f, &dispatch.WakerOptions{MaxSleep: 100 * time.Millisecond})
				enginetest.NoError(t, err)
				alarm.Start()
				t.Cleanup(func() { _ = alarm.Stop(enginetest.Context(t)) })
				all = append(all, f)
			}
			f := all[0]
			var ids []string
			until := clock.System.Now().Add(time.Duration(rounds(2)) * time.Second)
			for clock.System.Now().Before(until) {
				started, err := fsm.StartMany(t.Context(), f.eng, d, make([]int, 20), nil)
				enginetest.NoError(t, err)
				for _, s := range started {
					ids = append(ids, s.ID)
				}
				f.expireLeases() // somebody will take over what runs
				pause(t.Context(), 50*time.Millisecond)
			}
			for _, id := range ids {
				f.ends(id, fsm.Done)
			}
			sound(t, f.eng)
			if name == enginetest.Postgres {
				if n := db.Int(t, "select deadlocks from pg_stat_database where datname = current_database()"); n != 0 {
					t.Errorf("%d deadlocks", n)
				}
			}
			t.Logf("%d instances", len(ids))
		})
	}
}

// pause is work that takes time.
func pause(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// The application holds every connection of the pool: heartbeats go on.
func TestCase21HeartbeatsDoNotWaitForTheApplication(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, name), nil)
			slow := newGate(t)
			d := machine("slow", func(_ context.Context, r run) (fsm.Outcome, error) { slow.pass(r.ID); return r.Done(nil), nil })
			f.register(d)
			id := start(f, d, 0, nil)
			wait := f.begin()
			slow.await(t)
			var held []sqldb.Tx
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				tx, err := host.Of(f.eng).DB.Begin(ctx, sqldb.Write)
				cancel()
				if err != nil {
					break // that was the last one
				}
				held = append(held, tx)
			}
			for range 10 {
				f.clock.Advance(6 * time.Second)
				enginetest.Eventually(t, "the lease is renewed", func() bool { return f.leaseEnd().Equal(f.clock.Now().Add(30 * time.Second)) })
			}
			for _, tx := range held {
				tx.Rollback()
			}
			slow.release()
			wait()
			f.wantStatus(id, fsm.Done)
		})
	}
}

// A cancelled step is told so by the next heartbeat.
func TestTheContextOfACancelledStepEnds(t *testing.T) {
	var lost counter
	eachWith(t, *quiet(&lost), func(f *fixture) {
		t := f.t
		began := make(chan struct{})
		d := machine("long", func(ctx context.Context, _ run) (fsm.Outcome, error) {
			close(began)
			<-ctx.Done()
			return fsm.Outcome{}, context.Cause(ctx)
		})
		f.register(d)
		id := start(f, d, 0, nil)
		wait := f.begin()
		<-began
		if err := f.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { wait(); close(ended) }()
		enginetest.Eventually(t, "its context ends", func() bool {
			select {
			case <-ended:
				return true
			default:
				f.clock.Advance(6 * time.Second) // a heartbeat
				return false
			}
		})
		f.wantStatus(id, fsm.Cancelled)
		enginetest.Eventually(t, "its lease is cleared away", func() bool {
			f.after(minute)
			return f.db.Rows(t, "perdure", "leases") == 0 && f.db.Rows(t, "perdure", "interrupts") == 0
		})
	})
}

// A process stops with an error if a step does not return; its claim is taken over
// when the lease is over, not before.
func TestAStepThatDoesNotStopKeepsItsClaim(t *testing.T) {
	each(t, func(f *fixture) {
		t := f.t
		var lost counter
		stubborn := newGate(t)
		d := machine("stubborn", func(_ context.Context, r run) (fsm.Outcome, error) {
			if r.Crashes == 0 {
				stubborn.pass(r.ID)
			}
			return r.Done(r.Crashes), nil
		})
		process := f.other(quiet(&lost))
		process.register(d)
		f.register(d)
		id := start(f, d, 0, nil)
		wait := process.begin()
		stubborn.await(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := process.Drain(ctx); err == nil || !strings.Contains(err.Error(), "still running") {
			t.Errorf("drain: %v", err)
		}
		if n := f.drain(); n != 0 {
			t.Errorf("%d were taken over before the lease was over", n)
		}
		f.after(minute)
		f.wantResult(id, "1")
		stubborn.release()
		wait()
	})
}

// Opening an engine needs no machines; New refuses what cannot be.
func TestNewRefusesNonsense(t *testing.T) {
	t.Parallel()
	eng, err := perdure.Open(t.Context(), enginetest.New(t, enginetest.SQLite).DSN, nil)
	enginetest.NoError(t, err)
	defer func() { _ = eng.Close() }()
	for _, o := range []fsm.Options{
		{Lease: time.Millisecond},
		{MaxCrashes: -1},
		{Timeout: -1},
		{InlineSteps: -1},
		{MaxState: 1},
		{MaxState: 1 << 30},
		{Queues: map[string]int{"": 1}},
		{Queues: map[string]int{"q": 0}},
		{Queues: map[string]int{"q": 1 << 20}},
	} {
		if _, err := fsm.New(eng, &o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if _, err := fsm.New(nil, nil); err == nil {
		t.Error("no engine was accepted")
	}
	machines, err := fsm.New(eng, nil)
	enginetest.NoError(t, err)
	for name, d := range map[string]fsm.Definer{
		"no name": fsm.Define[int]("", 1, nil, fsm.Step("s", done, nil)), "version 0": fsm.Define("m", 0, nil, fsm.Step("s", done, nil)),
		"no steps": fsm.Define[int]("m", 1, nil), "no function": fsm.Define("m", 1, nil, fsm.Step[int]("s", nil, nil)),
		"a step twice": fsm.Define("m", 1, nil, fsm.Step("s", done, nil), fsm.Step("s", done, nil)), "no step name": fsm.Define("m", 1, nil, fsm.Step("", done, nil)),
		"bad queue": machine("m", done, with{Queue: " "}), "negative time": fsm.Define("m", 1, nil, fsm.Step("s", done, &fsm.StepOptions{Timeout: -1})),
	} {
		if err := machines.Register(d); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := machines.Register(machine("m", done), machine("m", done)); err == nil {
		t.Error("the same version was registered twice")
	}
}
