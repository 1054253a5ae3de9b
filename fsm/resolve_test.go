package fsm_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/faultproxy"
)

// noCrash are options of a process whose leases outlast the test: what its claims
// hold is returned by the process itself or not at all.
func noCrash(t *testing.T) *fsm.Options {
	t.Helper()
	return &fsm.Options{
		Lease:   time.Hour,
		OnError: func(error) {},
		OnCrash: func(c perdure.Crash) { t.Errorf("instance %s counted a crash", c.ID) },
	}
}

// readable returns a database behind a proxy that can read the statements.
func readable(t *testing.T) (enginetest.Database, *faultproxy.Proxy) {
	t.Helper()
	db, proxy := behindProxy(t, enginetest.New(t, enginetest.Postgres))
	u, err := url.Parse(db.DSN)
	enginetest.NoError(t, err)
	q := u.Query()
	q.Set("default_query_exec_mode", "exec")
	u.RawQuery = q.Encode()
	db.DSN = u.String()
	return db, proxy
}

// dispatched is a live fixture with a dispatcher and the options as they are.
func dispatched(t *testing.T, db enginetest.Database, options *fsm.Options, definitions ...fsm.Definer) *fixture {
	t.Helper()
	f := live(t, db, options, definitions...)
	alarm, err := dispatch.NewWaker(f, &dispatch.WakerOptions{MaxSleep: 200 * time.Millisecond, OnError: func(error) {}})
	enginetest.NoError(t, err)
	alarm.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
		defer cancel()
		_ = alarm.Stop(ctx)
	})
	return f
}

// The connection is lost at the COMMIT of a claim, of a step and of an end, before
// and after the server received it. The process finds out what was committed and
// continues long before the lease expires, and nothing counts as a crash.
func TestACommitWithoutAnAnswerIsResolvedByItsProcess(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"claim": "order by target_id, seq",       // the inbox, which COMMIT is sent with
		"step":  "set step = o.step",             // an outcome that leads on
		"end":   "insert into perdure.finished ", // the last outcome
	} {
		for how, lose := range map[string]func(*faultproxy.Proxy, string) <-chan struct{}{
			"answer": (*faultproxy.Proxy).LoseAnswer, "message": (*faultproxy.Proxy).LoseMessage, "terminated": (*faultproxy.Proxy).Terminate,
		} {
			t.Run(what+"/"+how, func(t *testing.T) {
				t.Parallel()
				db, proxy := readable(t)
				d := fsm.Define("cut", 1, nil,
					fsm.Step("first", always(func(r run) fsm.Outcome { return r.Next("second") }), nil),
					fsm.Step("second", always(func(r run) fsm.Outcome { return r.Done(nil) }), nil),
				)
				f := dispatched(t, db, noCrash(t), d)
				for range 3 {
					lost := lose(proxy, text)
					id := start(f, d, 0, nil)
					if i := f.ends(id, fsm.Done); i.Crashes != 0 {
						t.Errorf("the instance has %d crashes", i.Crashes)
					}
					select {
					case <-lost:
					case <-enginetest.Context(t).Done():
						t.Fatal("no COMMIT was lost: nothing was proven")
					}
				}
				enginetest.Eventually(t, "no lease is left", func() bool { return f.db.Rows(t, "perdure", "leases") == 0 })
				sound(t, f.eng)
			})
		}
	}
}

// The response to the COMMIT of an outcome with rows of the application is lost, or the
// session is terminated right after it. The rows are stored once: an outcome that may be
// committed is never written again, and a step that leads on keeps its claim.
func TestRowsOfAnUncertainOutcomeAreStoredOnce(t *testing.T) {
	t.Parallel()
	for how, lose := range map[string]func(*faultproxy.Proxy, string) <-chan struct{}{
		"answer": (*faultproxy.Proxy).LoseAnswer, "terminated": (*faultproxy.Proxy).Terminate,
	} {
		for what, text := range map[string]string{"step": "set step = o.step", "end": "insert into perdure.finished "} {
			t.Run(what+"/"+how, func(t *testing.T) {
				t.Parallel()
				db, proxy := readable(t)
				db.Exec(t, "create table ledger (step text)")
				enter := func(step string) func(tx *perdure.Tx) error {
					return func(tx *perdure.Tx) error {
						_, err := tx.Exec("insert into ledger values ($1)", step)
						return err
					}
				}
				d := fsm.Define("cut", 1, nil,
					fsm.Step("first", always(func(r run) fsm.Outcome { return r.Next("second").With(enter("first")) }), nil),
					fsm.Step("second", always(func(r run) fsm.Outcome { return r.Done(nil).With(enter("second")) }), nil),
				)
				f := dispatched(t, db, noCrash(t), d)
				const instances = 3
				for range instances {
					lost := lose(proxy, text)
					f.ends(start(f, d, 0, nil), fsm.Done)
					select {
					case <-lost:
					case <-enginetest.Context(t).Done():
						t.Fatal("no COMMIT was lost: nothing was proven")
					}
				}
				for _, step := range []string{"first", "second"} {
					if n := f.db.Int(t, "select count(*) from ledger where step = '"+step+"'"); n != instances {
						t.Errorf("%d instances have %d rows of step %s", instances, n, step)
					}
				}
				sound(t, f.eng)
			})
		}
	}
}

// Backends are terminated at random under load in two processes: nothing is lost,
// and no instance counts a crash.
func TestTerminatedBackendsAreNotCrashes(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			var effects tally
			d := mixture(&effects)
			f := dispatched(t, db, noCrash(t), d, leaf)
			dispatched(t, db, noCrash(t), d, leaf)
			f.endure(d, &effects, func() {
				for range rounds(60) {
					pause(t.Context(), 20*time.Millisecond)
					f.terminate(2)
				}
			})
			if n := f.db.Int(t, "select coalesce(sum(crashes), 0) from "+f.table("instances")); n != 0 {
				t.Errorf("%d crashes were counted", n)
			}
		})
	}
}

// A disk that is full when outcomes are written, again and again: the outcomes are
// written when there is room, and no instance counts a crash.
func TestAFullDiskIsNotACrash(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	var runs tally
	d := machine("write", func(_ context.Context, r run) (fsm.Outcome, error) {
		runs.add(r.ID)
		return r.Done(nil), nil
	})
	options := noCrash(t)
	options.Lease = 5 * time.Minute
	f := dispatched(t, db, options, d)
	var refusals counter
	db.Exec(t, `create sequence refusals`)
	db.Exec(t, `create function full_disk() returns trigger language plpgsql as $$
		begin
			if nextval('refusals') % 4 <> 0 then
				raise exception 'no space left on device' using errcode = '53100';
			end if;
			return new;
		end $$`)
	db.Exec(t, `create trigger full_disk before insert on perdure.finished for each statement execute function full_disk()`)
	var ids []string
	for range 10 {
		ids = append(ids, start(f, d, 0, nil))
	}
	for _, id := range ids {
		f.ends(id, fsm.Done)
		if n := runs.of(id); n != 1 {
			t.Errorf("instance %s ran %d times, want once", id, n)
		}
	}
	if refusals.n.Store(db.Int(t, "select last_value from refusals")); refusals.n.Load() < 4 {
		t.Errorf("only %d writes met the full disk", refusals.n.Load())
	}
}

// An outcome fails for a reason that is neither its own nor known: the instance waits
// with the error and runs again, without a crash and without a loop.
func TestAnOutcomeThatFailsForAnUnknownReasonWaits(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		enginetest.SQLite: `create trigger odd before insert on perdure_finished begin select raise(abort, 'something odd'); end`,
		enginetest.Postgres: `create function odd() returns trigger language plpgsql as $$ begin raise exception 'something odd' using errcode = 'P0001'; end $$;
			create trigger odd before insert on perdure.finished for each statement execute function odd()`,
		enginetest.MySQL: `create trigger odd before insert on perdure_finished for each row signal sqlstate '45000' set message_text = 'something odd'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var errs counter
			options := noCrash(t)
			options.OnError = func(error) { errs.add() }
			f := newFixture(t, enginetest.New(t, name), options)
			var runs counter
			d := machine("odd", func(_ context.Context, r run) (fsm.Outcome, error) {
				runs.add()
				return r.Done(nil), nil
			})
			f.register(d)
			id := start(f, d, 0, nil)
			f.db.Exec(t, trigger)
			f.drain()
			i := f.get(id)
			if i.Status != fsm.Scheduled || i.Crashes != 0 || i.Attempt != 1 || i.Error == "" {
				t.Errorf("the instance is %s with %d crashes, %d attempts and error %q", i.Status, i.Crashes, i.Attempt, i.Error)
			}
			if wait := i.Due.Sub(f.clock.Now()); wait < 15*time.Second || wait > 30*time.Second {
				t.Errorf("the instance waits for %v, want 15 to 30 s", wait)
			}
			runs.is(t, "runs", 1)
			f.db.Exec(t, map[string]string{enginetest.SQLite: "drop trigger odd", enginetest.MySQL: "drop trigger odd", enginetest.Postgres: "drop trigger odd on perdure.finished"}[name])
			f.after(30 * time.Second)
			f.wantStatus(id, fsm.Done)
			f.wantRows("leases", 0)
		})
	}
}

// outage calls fn while the database takes no writes.
func (f *fixture) outage(fn func()) {
	f.t.Helper()
	admin := enginetest.Database{Name: f.db.Name, DSN: f.db.DSN + "&default_transaction_read_only=off"}
	name := f.db.Text(f.t, "select current_database()")
	set := func(value string) {
		admin.Exec(f.t, fmt.Sprintf("alter database %s set default_transaction_read_only = %s", name, value))
		admin.Exec(f.t, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	}
	set("on")
	fn()
	set("off")
}

// settles processes until a claim succeeds: the first ones meet connections that the
// server has closed.
func (f *fixture) settles() {
	f.t.Helper()
	enginetest.Eventually(f.t, "a claim succeeds", func() bool {
		_, err := f.Process(f.t.Context())
		return err == nil
	})
}

// A process was away from the database and comes back: it does not take leases of
// others for expired before they have had the time to renew them.
func TestAfterAnOutageOthersMayRenewTheirLeasesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.Postgres), nil)
	g := newGate(t)
	d := machine("held", func(_ context.Context, r run) (fsm.Outcome, error) {
		g.pass(r.ID)
		return r.Done(r.Crashes), nil
	})
	var crashes counter
	var lost counter
	holder := f.other(quiet(&lost))
	holder.register(d)
	back := f.other(&fsm.Options{OnError: func(error) {}, OnCrash: func(perdure.Crash) { crashes.add() }})
	back.register(d)
	id := start(f, d, 0, nil)
	wait := holder.beginBeside()
	g.await(t)
	back.clock.Advance(minute)
	f.outage(func() {
		if _, err := back.Process(t.Context()); err == nil {
			t.Error("a claim succeeded during the outage")
		}
	})
	back.settles()
	crashes.is(t, "crashes right after the outage", 0)
	g.release()
	wait()
	f.wantResult(id, "0")
	crashes.is(t, "crashes", 0)
}

// A process that is lost is taken over after an outage as well.
func TestAfterAnOutageALostProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.Postgres), nil)
	g := newGate(t)
	var runs counter
	d := machine("held", func(_ context.Context, r run) (fsm.Outcome, error) {
		if runs.add() == 1 {
			g.pass(r.ID)
		}
		return r.Done(r.Crashes), nil
	})
	var lost, crashes counter
	holder := f.other(quiet(&lost))
	holder.register(d)
	back := f.other(&fsm.Options{OnError: func(error) {}, OnCrash: func(perdure.Crash) { crashes.add() }})
	back.register(d)
	id := start(f, d, 0, nil)
	wait := holder.beginBeside()
	g.await(t)
	back.clock.Advance(minute)
	f.outage(func() {
		if _, err := back.Process(t.Context()); err == nil {
			t.Error("a claim succeeded during the outage")
		}
	})
	back.settles()
	crashes.is(t, "crashes right after the outage", 0)
	back.after(6 * time.Second) // a fifth of the lease
	crashes.is(t, "crashes after a heartbeat's time", 1)
	back.after(time.Second)
	f.wantResult(id, "1")
	g.release()
	wait()
	lost.is(t, "lost claims", 1)
}

// A lease of this process expired although the process is alive: what it held is
// returned without counting a crash.
func TestTheOwnExpiredLeaseIsNotACrash(t *testing.T) {
	t.Parallel()
	for name, past := range map[string]string{enginetest.SQLite: "0", enginetest.Postgres: "'2000-01-01Z'", enginetest.MySQL: "'2000-01-01'"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lost counter
			options := quiet(&lost)
			options.OnCrash = func(c perdure.Crash) { t.Errorf("instance %s counted a crash", c.ID) }
			f := newFixture(t, enginetest.New(t, name), options)
			g := newGate(t)
			var runs counter
			d := machine("own", func(_ context.Context, r run) (fsm.Outcome, error) {
				if runs.add() == 1 {
					g.pass(r.ID)
				}
				return r.Done(r.Crashes), nil
			})
			f.register(d)
			id := start(f, d, 0, nil)
			wait := f.begin()
			g.await(t)
			f.db.Exec(t, "update "+f.table("leases")+" set expires_at = "+past)
			_, err := f.Process(t.Context())
			enginetest.NoError(t, err)
			_, err = f.Wait(enginetest.Context(t), id) // the last look of begin may have claimed it
			enginetest.NoError(t, err)
			f.wantResult(id, "0")
			g.release()
			wait()
			lost.is(t, "lost claims", 1)
			f.wantRows("leases", 0)
		})
	}
}
