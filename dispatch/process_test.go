package dispatch_test

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/task"
)

// roleVariable makes this binary another process of a test: "give" commits work
// of every kind and ends, "die" claims work of every kind and is killed, "feed"
// commits hooks until its input ends.
const roleVariable, fileVariable = "PERDURE_TEST_DISPATCH_ROLE", "PERDURE_TEST_DISPATCH_DSN"

// shortLease is the lease of the workers of a dying process, longLease that of the
// others: they must not lose claims because the machine is slow.
const shortLease, longLease = time.Second, time.Minute

// kinds are all kinds of work in one process. ran is called with the kind.
type kinds struct {
	eng      *perdure.Engine
	machines *fsm.Machines
	machine  *fsm.Definition[int]
	hooks    *hook.Hooks
	receipt  *hook.Hook[int]
	alarms   *alarm.Alarms
	ring     *alarm.Type[string]
	actors   *actor.Actors
	worker   *task.Worker
}

const bell = `{"id": "bell", "initial": "a", "states": {"a": {"after": {"20": "b"}}, "b": {"entry": "ring"}}}`

func newKinds(ctx context.Context, dsn string, lease time.Duration, ran func(kind string)) (*kinds, error) {
	k := &kinds{}
	var err error
	set := func(e error) { err = first(err, e) }
	var e error
	if k.eng, e = perdure.Open(ctx, dsn, nil); e != nil {
		return nil, e
	}
	k.machines, e = fsm.New(k.eng, &fsm.Options{Lease: lease})
	set(e)
	k.machine = fsm.Define("m", 1, nil, fsm.Step("go", func(_ context.Context, run *fsm.Run[int]) (fsm.Outcome, error) {
		ran("fsm")
		return run.Done(nil), nil
	}, nil))
	set(k.machines.Register(k.machine))
	k.hooks, e = hook.New(k.eng, "test", &hook.Options{Lease: lease, OnCrash: func(perdure.Crash) {}})
	set(e)
	k.receipt, e = hook.Define(k.hooks, "a", func(context.Context, int) error { ran("hook"); return nil }, nil)
	set(e)
	k.alarms, e = alarm.New(k.eng, &alarm.Options{Lease: lease})
	set(e)
	k.ring, e = alarm.Handle(k.alarms, "ring", func(context.Context, string) error { ran("alarm"); return nil }, nil)
	set(e)
	k.actors, e = actor.New(k.eng, &actor.Options{Lease: lease})
	set(e)
	set(k.actors.Register("bell", []byte(bell), &actor.TypeOptions{Effects: map[string]actor.Effect{
		"ring": {Run: func(context.Context, actor.Call) error { ran("actor"); return nil }},
	}}))
	k.worker, e = task.NewWorker(k.eng, &task.Options{Lease: lease, OnCrash: func(perdure.Crash) {}, Senders: map[string]task.Sender{
		"send": func(context.Context, json.RawMessage) (any, error) { ran("task"); return nil, nil },
	}})
	set(e)
	return k, err
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// start starts a dispatcher for each kind that never polls.
func (k *kinds) start() (stop func(context.Context) error, err error) {
	var all []*dispatch.Waker
	for _, p := range []dispatch.Processor{k.machines, k.hooks, k.alarms, k.actors, k.worker} {
		d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{MaxSleep: time.Hour})
		if err != nil {
			return nil, err
		}
		d.Start()
		all = append(all, d)
	}
	return func(ctx context.Context) (err error) {
		for _, d := range all {
			err = first(err, d.Stop(ctx))
		}
		return err
	}, nil
}

// give commits one work item of each kind.
func (k *kinds) give(ctx context.Context) error {
	id := crand.Text()
	_, err := k.actors.Spawn(ctx, actor.Ref{Type: "bell", ID: id}, actor.Caller{Kind: actor.System}, nil, nil)
	if err != nil {
		return err
	}
	return k.eng.Update(ctx, func(tx *perdure.Tx) error {
		if _, err := fsm.StartIn(tx, k.machine, 1, nil); err != nil {
			return err
		}
		if _, err := k.receipt.TriggerIn(tx, 1, nil); err != nil {
			return err
		}
		if err := k.ring.ScheduleIn(tx, alarm.ID(id), "", nil); err != nil {
			return err
		}
		_, err := task.EnqueueIn(tx, "send", map[string]any{"task_type": "send"}, nil)
		return err
	})
}

// child is what this binary does as another process.
func child(role string) int {
	var err error
	switch role {
	case "die":
		err = die(os.Getenv(fileVariable))
	case "feed":
		err = feed(os.Getenv(fileVariable))
	default:
		err = give(os.Getenv(fileVariable))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func give(dsn string) error {
	k, err := newKinds(context.Background(), dsn, longLease, func(string) {})
	if err != nil {
		return err
	}
	return first(k.give(context.Background()), k.eng.Close())
}

// die commits and claims work until it has claimed some of every kind, prints how
// often it has committed, and is killed with its claims.
func die(dsn string) error {
	ctx := context.Background()
	claimed := make(chan string)
	k, err := newKinds(ctx, dsn, shortLease, func(kind string) {
		claimed <- kind
		select {} // the lease is never given back
	})
	if err != nil {
		return err
	}
	if _, err := k.start(); err != nil {
		return err
	}
	missing := map[string]bool{}
	for _, kind := range allKinds {
		missing[kind] = true
	}
	for given := 1; ; given++ {
		if err := k.give(ctx); err != nil {
			return err
		}
		for deadline := time.After(time.Second); len(missing) > 0; {
			select {
			case kind := <-claimed:
				delete(missing, kind)
				continue
			case <-deadline: // the test was faster
			}
			break
		}
		if len(missing) == 0 {
			host.Of(k.eng).Hub.Close() // a process that dies before it has notified the others is found by polling
			fmt.Println(given)
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			return self.Kill()
		}
	}
}

var allKinds = []string{"fsm", "hook", "alarm", "actor", "task"}

// another runs another process to its end and returns what it has printed.
func another(t *testing.T, role, dsn string) (string, error) {
	t.Helper()
	c := exec.CommandContext(enginetest.Context(t), os.Args[0])
	c.Env = append(os.Environ(), roleVariable+"="+role, fileVariable+"="+dsn)
	c.Stderr = os.Stderr
	out, err := c.Output()
	return strings.TrimSpace(string(out)), err
}

// watching starts all kinds on a database and returns the channels on which they
// report runs.
func watching(t *testing.T, dsn string) map[string]chan time.Time {
	t.Helper()
	ran := map[string]chan time.Time{}
	for _, kind := range allKinds {
		ran[kind] = make(chan time.Time, 100)
	}
	k, err := newKinds(enginetest.Context(t), dsn, longLease, func(kind string) { ran[kind] <- time.Now() })
	noError(t, err)
	t.Cleanup(func() { noError(t, k.eng.Close()) })
	stop, err := k.start()
	noError(t, err)
	t.Cleanup(func() { noError(t, stop(enginetest.Context(t))) })
	return ran
}

// carriers are the databases that carry wake-ups between processes and all kinds
// of work.
var carriers = []string{enginetest.SQLite, enginetest.Postgres}

// No dispatcher polls here: only a wake-up that another process causes can make
// them look.
func TestWorkThatAnotherProcessCommitsIsFoundWithoutPolling(t *testing.T) {
	t.Parallel()
	for _, name := range carriers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			ran := watching(t, db.DSN)
			for range 3 { // the first may come before the dispatchers sleep
				_, err := another(t, "give", db.DSN)
				noError(t, err)
				for _, kind := range allKinds {
					within(t, ran[kind])
				}
			}
		})
	}
}

// The expiry of a lease is known in time although the claim was made while this
// process slept.
func TestTheWorkOfAKilledProcessIsTakenOverWithoutPolling(t *testing.T) {
	t.Parallel()
	for _, name := range carriers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			ran := watching(t, db.DSN)
			_, err := another(t, "give", db.DSN)
			noError(t, err)
			for _, kind := range allKinds { // all dispatchers sleep then
				within(t, ran[kind])
			}
			out, err := another(t, "die", db.DSN)
			if err == nil {
				t.Fatal("the other process was not killed")
			}
			given, err := strconv.Atoi(out)
			noError(t, err)
			for _, kind := range allKinds {
				for range given {
					within(t, ran[kind])
				}
			}
		})
	}
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(child(role))
	}
	testdb.Main(m)
}
