package torture_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
)

// recorders are the kinds of work of a process whose handlers commit a row with their
// outcome. The table has no unique key: a second row would stay.
type recorders struct {
	hooks    *hook.Hooks
	hook     *hook.Hook[int]
	alarms   *alarm.Alarms
	alarm    *alarm.Type[int]
	machines *fsm.Machines
	machine  *fsm.Definition[int]
}

// write returns the function that commits the row of a work item.
func write(kind, id string) func(tx *perdure.Tx) error {
	return func(tx *perdure.Tx) error {
		_, err := tx.Exec("insert into written (kind, id) values ('" + kind + "', '" + id + "')")
		return err
	}
}

func newRecorders(eng *perdure.Engine) (w *recorders, err error) {
	const lease, crashes = time.Second, 1_000_000
	w = &recorders{}
	ignore := func(error) {}
	w.hooks, err = hook.New(eng, "torture", &hook.Options{Lease: lease, MaxCrashes: crashes, OnCrash: func(perdure.Crash) {}, OnError: ignore})
	if err != nil {
		return nil, err
	}
	w.hook, err = hook.Define(w.hooks, "write", func(ctx context.Context, _ int) error {
		torture.Pause(ctx, rand.N(5*time.Millisecond))
		return perdure.CommitWith(ctx, write("hook", hook.FromContext(ctx).ID))
	}, nil)
	if err != nil {
		return nil, err
	}
	w.alarms, err = alarm.New(eng, &alarm.Options{Lease: lease, MaxCrashes: crashes, OnError: ignore})
	if err != nil {
		return nil, err
	}
	w.alarm, err = alarm.Handle(w.alarms, "write", func(ctx context.Context, _ int) error {
		torture.Pause(ctx, rand.N(5*time.Millisecond))
		return perdure.CommitWith(ctx, write("alarm", alarm.FromContext(ctx).Alarm.ID))
	}, nil)
	if err != nil {
		return nil, err
	}
	w.machines, err = fsm.New(eng, &fsm.Options{Lease: lease, MaxCrashes: crashes, OnCrash: func(perdure.Crash) {}, OnError: ignore})
	if err != nil {
		return nil, err
	}
	w.machine = fsm.Define("write", 1, nil, fsm.Step("write", func(ctx context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		torture.Pause(ctx, rand.N(5*time.Millisecond))
		return r.Done(nil).With(write("step", r.ID)), nil
	}, nil))
	return w, w.machines.Register(w.machine)
}

// runRecorders is a child that runs work until it is stopped, or killed.
func runRecorders(ctx context.Context, self *torture.Self) error {
	var dsn string
	if err := self.Args(&dsn); err != nil {
		return err
	}
	eng, err := perdure.Open(ctx, dsn, nil)
	for sqldb.IsTransient(err) && ctx.Err() == nil { // its connection was terminated, like those of running children
		eng, err = perdure.Open(ctx, dsn, nil)
	}
	if err != nil {
		return err
	}
	w, err := newRecorders(eng)
	if err != nil {
		return err
	}
	var pollers []*dispatch.Poller
	for _, p := range []dispatch.Processor{w.hooks, w.alarms, w.machines} {
		poller, err := dispatch.NewPoller(p, &dispatch.PollerOptions{Interval: 100 * time.Millisecond, OnError: func(error) {}})
		if err != nil {
			return err
		}
		poller.Start()
		pollers = append(pollers, poller)
	}
	self.Ready()
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.Background(), testdb.Patience)
	defer cancel()
	for _, p := range pollers {
		err = errors.Join(err, p.Stop(stopping))
	}
	return errors.Join(err, eng.Close())
}

// Processes are killed, stopped beyond their leases and cut off from the database
// while their work commits rows with its outcomes. Every work item commits its row
// exactly once.
func TestRowsCommitExactlyOnceWithTheirOutcome(t *testing.T) {
	on(t, []backend{onSQLite, onPostgres}, func(t *testing.T, dsn string) {
		db := enginetest.Database{Name: map[bool]string{true: enginetest.SQLite, false: enginetest.Postgres}[strings.HasPrefix(dsn, "sqlite:")], DSN: dsn}
		n := times(500)
		startWriting(t, db, n)
		start := func() (*torture.Child, error) { return torture.StartChild("runRecorders", dsn) }
		seed, done := seedOf(t), make(chan error, 2)
		go func() {
			loop := &torture.CrashLoop{Start: start, Kills: times(25), Seed: seed, Longest: 200 * time.Millisecond}
			done <- loop.Run(t.Context())
		}()
		go func() { done <- stopOften(t, db, start, times(3)) }()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		last, err := start()
		enginetest.NoError(t, err)
		enginetest.Eventually(t, "everything has ended", func() bool { return unfinished(t, db) == 0 })
		enginetest.NoError(t, last.Stop())
		for _, kind := range []string{"hook", "alarm", "step"} {
			rows := db.Int(t, "select count(*) from written where kind = '"+kind+"'")
			items := db.Int(t, "select count(distinct id) from written where kind = '"+kind+"'")
			if rows != int64(n) || items != int64(n) {
				t.Errorf("%d rows of %d %ss, want one of each of %d", rows, items, kind, n)
			}
		}
	})
}

// startWriting starts n work items of each kind.
func startWriting(t *testing.T, db enginetest.Database, n int) {
	t.Helper()
	eng := db.Open(t, nil)
	db.Exec(t, "create table written (kind text not null, id text not null)")
	w, err := newRecorders(eng)
	enginetest.NoError(t, err)
	err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
		for i := range n {
			if _, err := w.hook.TriggerIn(tx, i, nil); err != nil {
				return err
			}
			if err := w.alarm.ScheduleIn(tx, alarm.ID(host.Of(eng).NewID()), i, &alarm.ScheduleOptions{Delay: time.Millisecond}); err != nil {
				return err
			}
		}
		return nil
	})
	enginetest.NoError(t, err)
	_, err = fsm.StartMany(t.Context(), eng, w.machine, make([]int, n), nil)
	enginetest.NoError(t, err)
}

// unfinished returns the number of work items that have not ended.
func unfinished(t *testing.T, db enginetest.Database) (n int64) {
	t.Helper()
	for _, table := range []string{"hooks", "alarms"} {
		n += db.Int(t, "select count(*) from "+db.Table("perdure", table)+" where status in ('scheduled', 'ready', 'retrying', 'running')")
	}
	instances, ended := db.Table("perdure", "instances"), db.Table("perdure", "finished")
	return n + db.Int(t, "select count(*) from "+instances+" i where not exists (select 1 from "+ended+" f where f.id = i.id)")
}

// stopOften stops a process for longer than its leases and lets it continue. On
// PostgreSQL it also ends the connections of all processes.
func stopOften(t *testing.T, db enginetest.Database, start func() (*torture.Child, error), often int) error {
	child, err := start()
	if err != nil {
		return err
	}
	for range often {
		if err := child.AwaitReady(t.Context()); err != nil {
			return err
		}
		torture.Pause(t.Context(), 200*time.Millisecond)
		if err := signal(t, child, "-STOP"); err != nil {
			return err
		}
		torture.Pause(t.Context(), 1500*time.Millisecond)
		if err := signal(t, child, "-CONT"); err != nil {
			return err
		}
		if db.Name == enginetest.Postgres {
			db.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		}
	}
	return child.Stop()
}

// signal sends a signal to a child.
func signal(t *testing.T, c *torture.Child, name string) error {
	return exec.CommandContext(t.Context(), "kill", name, strconv.Itoa(c.PID())).Run()
}
