package fsm_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
)

// victim are the arguments of a child that runs machines until it is killed.
type victim struct {
	DSN, Journal, Ledger string
	// Starts says that it also starts instances; the others only run them.
	Starts bool
}

// roles are what this program is when a test starts it again.
var roles = map[string]torture.Role{"machines": runMachines, "collectors": runCollectors, "cancels": cancelAndDie, "retries": retryAndDie}

// ledger is a file to which every execution of a step adds a line before anything
// else happens. It is apart from the database, so it also knows of steps whose
// outcome was lost.
type ledger struct {
	mu   sync.Mutex
	file *os.File
}

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &ledger{file: file}, err
}

// note adds a line in one write, so that lines of several processes do not mix.
func (l *ledger) note(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.file, format+"\n", args...)
	return err
}

// tortured are the machines that run under torture.
type tortured struct {
	chain, waiter, fan, ordered *fsm.Definition[int64]
	all                         []fsm.Definer
}

func newTortured(l *ledger) tortured {
	noted := func(number int, fn func(*fsm.Run[int64]) fsm.Outcome) func(context.Context, *fsm.Run[int64]) (fsm.Outcome, error) {
		return func(ctx context.Context, r *fsm.Run[int64]) (fsm.Outcome, error) {
			if err := l.note("step %s %d", r.ID, number); err != nil {
				return fsm.Outcome{}, err
			}
			pause(ctx, time.Duration(rand.Int64N(int64(5*time.Millisecond))))
			return fn(r), ctx.Err()
		}
	}
	var m tortured
	var steps []fsm.StepOf[int64]
	for i := range 5 {
		steps = append(steps, fsm.Step(fmt.Sprint("s", i), noted(i, func(r *fsm.Run[int64]) fsm.Outcome {
			if r.State++; i == 4 {
				return r.Done(r.State)
			}
			return r.Next(fmt.Sprint("s", i+1))
		}), nil))
	}
	m.chain = fsm.Define("chain", 1, nil, steps...)
	m.waiter = fsm.Define("waiter", 1, nil,
		fsm.Step("park", noted(0, func(r *fsm.Run[int64]) fsm.Outcome { return r.Await("go").Then("again") }), nil),
		fsm.Step("again", noted(1, func(r *fsm.Run[int64]) fsm.Outcome {
			r.State += int64(len(r.Awaited))
			return r.Await("never").Then("end").Within(50 * time.Millisecond)
		}), nil),
		fsm.Step("end", noted(2, func(r *fsm.Run[int64]) fsm.Outcome { return r.Done(r.State) }), nil),
	)
	child := fsm.Define("child", 1, nil, fsm.Step("only", noted(0, func(r *fsm.Run[int64]) fsm.Outcome { return r.Done(r.State) }), nil))
	m.fan = fsm.Define("fan", 1, nil,
		fsm.Step("spawn", noted(0, func(r *fsm.Run[int64]) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(child, 1, nil), fsm.ChildOf(child, 2, nil), fsm.ChildOf(child, 3, nil)).Then("join")
		}), nil),
		fsm.Step("join", func(ctx context.Context, r *fsm.Run[int64]) (fsm.Outcome, error) {
			children, err := r.Children(ctx)
			if err != nil {
				return fsm.Outcome{}, err
			}
			return r.Done(len(children)), l.note("step %s 1", r.ID)
		}, nil),
	)
	m.ordered = fsm.Define("ordered", 1, nil, fsm.Step("only", func(ctx context.Context, r *fsm.Run[int64]) (fsm.Outcome, error) {
		if err := l.note("order %d %d", r.State%3, r.State); err != nil {
			return fsm.Outcome{}, err
		}
		pause(ctx, time.Millisecond)
		return r.Done(nil), ctx.Err()
	}, nil))
	m.all = []fsm.Definer{m.chain, m.waiter, m.fan, m.ordered, child}
	return m
}

// open opens machines as a process of the torture has them.
func (m tortured) open(ctx context.Context, dsn string) (*perdure.Engine, *fsm.Machines, *dispatch.Waker, error) {
	eng, err := perdure.Open(ctx, dsn, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	machines, err := fsm.New(eng, &fsm.Options{
		Queues: map[string]int{fsm.DefaultQueue: 20}, Lease: 2 * time.Second, MaxCrashes: 1 << 30, InlineSteps: 3,
		OnError: func(error) {}, OnCrash: func(perdure.Crash) {},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if err := machines.Register(m.all...); err != nil {
		return nil, nil, nil, err
	}
	alarm, err := dispatch.NewWaker(machines, &dispatch.WakerOptions{MaxSleep: 50 * time.Millisecond, OnError: func(error) {}})
	return eng, machines, alarm, err
}

// runMachines is the role of the children: run machines, and start some, until
// killed.
func runMachines(ctx context.Context, self *torture.Self) error {
	var args victim
	if err := self.Args(&args); err != nil {
		return err
	}
	l, err := openLedger(args.Ledger)
	if err != nil {
		return err
	}
	journal, err := torture.OpenJournal(args.Journal)
	if err != nil {
		return err
	}
	m := newTortured(l)
	eng, _, alarm, err := m.open(ctx, args.DSN)
	if err != nil {
		return err
	}
	alarm.Start()
	if !args.Starts {
		self.Ready()
		<-ctx.Done()
		return alarm.Stop(context.WithoutCancel(ctx))
	}
	for ctx.Err() == nil {
		if err := m.startSome(ctx, eng, journal); err != nil {
			return err
		}
		self.Ready()
	}
	return nil
}

// startSome starts one instance of each machine, with its intent and its fate in
// the journal.
func (m tortured) startSome(ctx context.Context, eng *perdure.Engine, journal *torture.Journal) error {
	begin := func(kind string, d *fsm.Definition[int64], state int64, options fsm.StartOptions) error {
		options.ID = uuid.NewString()
		if err := journal.Intend(kind + ":" + options.ID); err != nil {
			return err
		}
		if _, err := fsm.Start(ctx, eng, d, state, &options); err != nil {
			return nil //nolint:nilerr // its fate is unknown
		}
		if err := journal.Acknowledge(kind + ":" + options.ID); err != nil {
			return err
		}
		if kind == "waiter" {
			_, _ = fsm.Send(ctx, eng, options.ID, "go", nil, &fsm.SignalOptions{Key: "k"})
		}
		return nil
	}
	now := clock.System.Now().UnixNano()
	for _, err := range []error{
		begin("chain", m.chain, 0, fsm.StartOptions{}), begin("waiter", m.waiter, 0, fsm.StartOptions{}), begin("fan", m.fan, 0, fsm.StartOptions{}),
		begin("ordered", m.ordered, now, fsm.StartOptions{Partition: fmt.Sprint("p", now%3)}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// durableFile returns the URL of a SQLite database on a real disk.
func durableFile(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "torture.db")
}

// Processes that run machines are killed, 25 times (times PERDURE_SOAK), beside one
// that goes on: every acknowledged instance ends as it should, none is lost or
// stuck, no step runs again after the next one has begun, and partitions keep their
// order. (Cases 2, 3, 19, 45, 56, 65 and 67 with real processes.)
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) string{
		enginetest.SQLite:   durableFile,
		enginetest.Postgres: testdb.DurablePostgres,
		enginetest.MySQL:    testdb.DurableMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := victim{DSN: open(t), Journal: filepath.Join(dir, "journal"), Ledger: filepath.Join(dir, "ledger"), Starts: true}
			bystander := args
			bystander.Starts, bystander.Journal = false, filepath.Join(dir, "unused")
			survivor, err := torture.StartChild("machines", bystander)
			enginetest.NoError(t, err)
			enginetest.NoError(t, survivor.AwaitReady(t.Context()))
			loop := &torture.CrashLoop{
				Start:   func() (*torture.Child, error) { return torture.StartChild("machines", args) },
				Kills:   rounds(25),
				Seed:    rand.Uint64(),
				Longest: 150 * time.Millisecond,
			}
			t.Logf("seed %d", loop.Seed)
			enginetest.NoError(t, loop.Run(t.Context()))
			enginetest.NoError(t, survivor.Stop())
			afterTheKills(t, args)
		})
	}
}

// afterTheKills lets everything end and looks what became of it.
func afterTheKills(t *testing.T, args victim) {
	t.Helper()
	l, err := openLedger(args.Ledger)
	enginetest.NoError(t, err)
	eng, machines, alarm, err := newTortured(l).open(t.Context(), args.DSN)
	enginetest.NoError(t, err)
	defer func() { enginetest.NoError(t, eng.Close()) }()
	known, err := torture.ReadJournal(args.Journal)
	enginetest.NoError(t, err)
	alarm.Start()
	for name := range known { // signals that were not sent any more
		if kind, id, _ := strings.Cut(name, ":"); kind == "waiter" {
			_, _ = fsm.Send(t.Context(), eng, id, "go", nil, &fsm.SignalOptions{Key: "k"})
		}
	}
	enginetest.Eventually(t, "everything ends", func() bool {
		live, _, err := machines.List(t.Context(), fsm.Filter{Live: true}, "", 1)
		enginetest.NoError(t, err)
		return len(live) == 0
	})
	enginetest.NoError(t, alarm.Stop(enginetest.Context(t)))
	results := map[string]string{"chain": "5", "waiter": "1", "fan": "3", "ordered": "null"}
	counts := map[string]int{}
	for name, outcome := range known {
		kind, id, _ := strings.Cut(name, ":")
		got, err := machines.Get(t.Context(), id)
		switch {
		case err != nil && outcome == torture.Acknowledged:
			t.Errorf("%s was acknowledged and is lost: %v", name, err)
		case err == nil && (got.Status != fsm.Done || string(got.Result) != results[kind]):
			t.Errorf("%s is %s with %s (%s)", name, got.Status, got.Result, got.Error)
		case err == nil:
			counts[kind]++
		}
	}
	t.Logf("ended: %v", counts)
	for kind := range results {
		if counts[kind] < 10 {
			t.Errorf("only %d of %s: little was proven", counts[kind], kind)
		}
	}
	sound(t, eng)
	auditLedger(t, args.Ledger)
}

// auditLedger looks for steps that were repeated after they were committed, and for
// partitions out of order.
func auditLedger(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	enginetest.NoError(t, err)
	defer file.Close()
	furthest, last := map[string]int{}, map[int64]int64{}
	again := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var id string
		var step int
		var key, number int64
		if n, _ := fmt.Sscanf(lines.Text(), "step %s %d", &id, &step); n == 2 {
			if before, ran := furthest[id]; ran && step < before {
				t.Errorf("step %d of %s ran after step %d had begun", step, id, before)
			} else if ran && step == before {
				again++
			}
			furthest[id] = step
		}
		if n, _ := fmt.Sscanf(lines.Text(), "order %d %d", &key, &number); n == 2 {
			if number < last[key] {
				t.Errorf("of partition %d, %d ran after %d", key, number, last[key])
			}
			last[key] = number
		}
	}
	t.Logf("%d steps ran again because their process was killed", again)
}
