package fsm_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// The black-box cases of the notes on the engine (section 3) are tests with their
// number in the name: TestCase31…. The files are case_*_test.go, by theme. Cases
// with many rounds run a part of them; PERDURE_SOAK is a factor for it.

// rounds returns how many rounds to run: n, times PERDURE_SOAK.
func rounds(n int) int {
	if f, err := strconv.ParseFloat(os.Getenv("PERDURE_SOAK"), 64); err == nil && f > 0 {
		return int(float64(n) * f)
	}
	return n
}

type (
	run  = *fsm.Run[int]
	step = func(context.Context, *fsm.Run[int]) (fsm.Outcome, error)
)

// done is a step that ends its instance with the state as its result.
func done(_ context.Context, r run) (fsm.Outcome, error) { return r.Done(r.State), nil }

// always is a step that returns the same outcome each time.
func always(outcome func(r run) fsm.Outcome) step {
	return func(_ context.Context, r run) (fsm.Outcome, error) { return outcome(r), nil }
}

// with are the options of a machine.
type with = fsm.DefinitionOptions[int]

// machine is a machine of one step.
func machine(name string, fn step, options ...with) *fsm.Definition[int] {
	var o with
	if len(options) > 0 {
		o = options[0]
	}
	return fsm.Define(name, 1, &o, fsm.Step("only", fn, nil))
}

// parker is a machine that waits for one of the names and ends with how many
// signals it was given.
func parker(name string, names ...string) *fsm.Definition[int] {
	return fsm.Define(name, 1, nil,
		fsm.Step("park", always(func(r run) fsm.Outcome { return r.Await(names...).Then("end") }), nil),
		fsm.Step("end", always(func(r run) fsm.Outcome { return r.Done(len(r.Awaited)) }), nil),
	)
}

// once is a retry policy that does not try again.
var once = retry.Policy{Kind: retry.KindNone, MaxAttempts: 1}

// eachWith is each with options.
func eachWith(t *testing.T, options fsm.Options, test func(f *fixture)) {
	t.Helper()
	t.Parallel()
	for _, name := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, enginetest.New(t, name), &options))
		})
	}
}

// other is another process on the same database, with a clock of its own that
// shows the same time.
func (f *fixture) other(options *fsm.Options) *fixture {
	f.t.Helper()
	return f.beside(perduretest.NewClock(f.clock.Now()), options)
}

// beside is another process with that clock.
func (f *fixture) beside(c *perduretest.Clock, options *fsm.Options) *fixture {
	f.t.Helper()
	eng, err := perdure.Open(f.t.Context(), f.db.DSN, &perdure.Options{Clock: c})
	enginetest.NoError(f.t, err)
	f.t.Cleanup(func() { _ = eng.Close() })
	machines, err := fsm.New(eng, options)
	enginetest.NoError(f.t, err)
	stopped(f.t, machines)
	return &fixture{Machines: machines, t: f.t, db: f.db, eng: eng, clock: c}
}

// stopped stops the machines with the test, before their engine is closed.
func stopped(t *testing.T, machines *fsm.Machines) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
		defer cancel()
		_ = machines.Drain(ctx)
	})
}

// quiet are options of a process that is expected to lose claims.
func quiet(lost *counter) *fsm.Options {
	return &fsm.Options{
		OnError: func(err error) {
			if errors.Is(err, core.ErrLost) {
				lost.add()
			}
		},
		OnCrash: func(perdure.Crash) {},
	}
}

// counter counts.
type counter struct{ n atomic.Int64 }

func (c *counter) add() int64 { return c.n.Add(1) }

func (c *counter) is(t testing.TB, what string, want int64) {
	t.Helper()
	if got := c.n.Load(); got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// tally counts by key.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
	return c.n[key]
}

func (c *tally) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

// begin processes in the background; wait returns when that has ended.
func (f *fixture) begin() (wait func()) {
	f.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Process(enginetest.Context(f.t))
		ended <- err
	}()
	return func() {
		f.t.Helper()
		enginetest.NoError(f.t, <-ended)
	}
}

// beginBeside is begin for a process that an outage may hit while it looks for more:
// whether that fails depends on the machine.
func (f *fixture) beginBeside() (wait func()) {
	f.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.Process(enginetest.Context(f.t))
	}()
	return func() { <-ended }
}

// arrives processes until one is at the gate, moving the clock on while nothing is
// due. It returns what waits for the end of the processing.
func (f *fixture) arrives(g *gate) (wait func()) {
	f.t.Helper()
	for range 100 {
		wait := f.begin()
		ended := make(chan struct{})
		go func() { wait(); close(ended) }()
		select {
		case <-g.entered:
			return func() { <-ended }
		case <-ended:
			f.clock.Advance(time.Second)
		}
	}
	f.t.Fatal("nobody arrived at the gate")
	return nil
}

// gate is a step that waits until it is let go, whatever its context says.
type gate struct {
	entered chan string // the ids of those that have arrived
	open    chan struct{}
}

func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{entered: make(chan string, 10_000), open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

// pass waits at the gate.
func (g *gate) pass(id string) {
	g.entered <- id
	<-g.open
}

// await returns when one has arrived.
func (g *gate) await(t testing.TB) string {
	t.Helper()
	select {
	case id := <-g.entered:
		return id
	case <-enginetest.Context(t).Done():
		t.Fatal("nobody arrived at the gate")
		return ""
	}
}

func (g *gate) release() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// live runs machines on the machine's clock and stops them with the test.
func live(t *testing.T, db enginetest.Database, options *fsm.Options, definitions ...fsm.Definer) *fixture {
	t.Helper()
	return liveOn(t, db, clock.System, options, definitions...)
}

func liveOn(t *testing.T, db enginetest.Database, c clock.Clock, options *fsm.Options, definitions ...fsm.Definer) *fixture {
	t.Helper()
	eng, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{Clock: c})
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	machines, err := fsm.New(eng, options)
	enginetest.NoError(t, err)
	stopped(t, machines)
	f := &fixture{Machines: machines, t: t, db: db, eng: eng}
	f.register(definitions...)
	return f
}

// ends waits until the instance has ended and checks how.
func (f *fixture) ends(id string, want fsm.Status) fsm.Instance {
	f.t.Helper()
	instance, err := f.Wait(enginetest.Context(f.t), id)
	enginetest.NoError(f.t, err)
	if instance.Status != want {
		f.t.Errorf("instance %s ended %s (%s), want %s", id, instance.Status, instance.Error, want)
	}
	return instance
}

// table names a table of the database in SQL.
func (f *fixture) table(name string) string { return f.db.Table("perdure", name) }

// wantRows fails the test unless the table has that many rows.
func (f *fixture) wantRows(table string, want int64) {
	f.t.Helper()
	if n := f.db.Rows(f.t, "perdure", table); n != want {
		f.t.Errorf("%s has %d rows, want %d", table, n, want)
	}
}

// wantResult fails the test unless the instance is done with that result.
func (f *fixture) wantResult(id, want string) {
	f.t.Helper()
	if got := f.get(id); got.Status != fsm.Done || string(got.Result) != want {
		f.t.Errorf("instance is %s with %s (%s), want done with %s", got.Status, got.Result, got.Error, want)
	}
}

// minute is longer than any lease of the tests.
const minute = time.Minute

// refused ends the test unless err is the error of an operation that the status of an
// instance does not allow.
func refused(t testing.TB, err error, finished bool) *perdure.StateError {
	t.Helper()
	state := enginetest.As[*perdure.StateError](t, err)
	if state.Kind != "instance" || state.Finished != finished {
		t.Fatalf("error is %+v, want one of an instance, finished: %v", state, finished)
	}
	return state
}
