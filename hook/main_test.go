package hook_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child()) // a test runs its own binary as another process
	}
	testdb.Main(m)
}

// Conformance has a case for each thing that hooks do, the same for all
// databases. The files conform_*_test.go add them by theme. A number in the
// name of a case is that of section 4 of the notes on hooks.
type Conformance struct{}

func TestConformance(t *testing.T) { enginetest.Conform(t, Conformance{}) }

var (
	orders = schema.NewTable("orders", schema.String("name"), schema.Int("paid").Default(0))
	shop   = schema.New("shop", orders)
)

// noon is when the fake clocks of the tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is an engine with hooks on a clock that the test moves.
type fixture struct {
	db    enginetest.Database
	clock *perduretest.Clock
	eng   *perdure.Engine
	hooks *hook.Hooks
	admin *hook.Admin
	runs  journal
}

// journal notes what handlers have seen.
type journal struct {
	mu   sync.Mutex
	seen []hook.Info
}

func (j *journal) add(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, hook.FromContext(ctx))
}

func (j *journal) all() []hook.Info {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]hook.Info(nil), j.seen...)
}

func (j *journal) count() int { return len(j.all()) }

// newFixture opens an engine on a fake clock, with hooks in the namespace
// "test".
func newFixture(t *testing.T, db enginetest.Database, options *hook.Options) *fixture {
	t.Helper()
	f := &fixture{db: db, clock: perduretest.NewClock(noon)}
	f.eng = db.Open(t, &perdure.Options{Schemas: []*schema.Schema{shop}, Clock: f.clock})
	f.hooks = newHooks(t, f.eng, "test", options)
	f.admin = f.hooks.Admin
	return f
}

// newHooks returns hooks that the test's end waits for. Jitter is off.
func newHooks(t testing.TB, eng *perdure.Engine, namespace string, options *hook.Options) *hook.Hooks {
	t.Helper()
	var o hook.Options
	if options != nil {
		o = *options
	}
	if o.Random == nil {
		o.Random = func() float64 { return 0 }
	}
	if o.OnError == nil {
		o.OnError = func(err error) { t.Errorf("hooks %s: %v", namespace, err) }
	}
	if o.OnCrash == nil {
		o.OnCrash = func(perdure.Crash) {}
	}
	hooks, err := hook.New(eng, namespace, &o)
	enginetest.NoError(t, err)
	t.Cleanup(func() {
		if err := hooks.Drain(enginetest.Context(t)); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return hooks
}

// define sets a handler.
func define[P any](t testing.TB, h *hook.Hooks, name string, fn func(context.Context, P) error) *hook.Hook[P] {
	t.Helper()
	defined, err := hook.Define(h, name, fn, nil)
	enginetest.NoError(t, err)
	return defined
}

// handle sets a handler that is noted in the journal.
func (f *fixture) handle(t testing.TB, name string, fn func(context.Context, string) error) {
	t.Helper()
	define(t, f.hooks, name, func(ctx context.Context, payload string) error {
		f.runs.add(ctx)
		if fn == nil {
			return nil
		}
		return fn(ctx, payload)
	})
}

// trigger commits a hook with its name as payload and returns its id.
func (f *fixture) trigger(t testing.TB, name string, options *hook.TriggerOptions) string {
	t.Helper()
	return trigger(t, f.eng, f.hooks, name, options)
}

func trigger(t testing.TB, eng *perdure.Engine, hooks *hook.Hooks, name string, options *hook.TriggerOptions) (id string) {
	t.Helper()
	err := eng.Update(enginetest.Context(t), func(tx *perdure.Tx) (err error) {
		id, err = hooks.TriggerIn(tx, name, name, options)
		return err
	})
	enginetest.NoError(t, err)
	return id
}

// process runs what is due and ends the test unless that many were run.
func (f *fixture) process(t testing.TB, want int) {
	t.Helper()
	process(t, f.hooks, want)
}

func process(t testing.TB, hooks *hook.Hooks, want int) {
	t.Helper()
	n, err := hooks.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	if n != want {
		t.Fatalf("process ran %d hooks, want %d", n, want)
	}
}

// begin runs what is due in the background; wait returns when that has ended.
func begin(t testing.TB, hooks *hook.Hooks) (wait func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := hooks.Process(enginetest.Context(t))
		done <- err
	}()
	return func() {
		t.Helper()
		enginetest.NoError(t, <-done)
	}
}

// get reads a hook.
func (f *fixture) get(t testing.TB, id string) hook.Record {
	t.Helper()
	record, err := f.admin.Get(enginetest.Context(t), id)
	enginetest.NoError(t, err)
	return record
}

// is ends the test unless the hook has the status.
func (f *fixture) is(t testing.TB, id string, want hook.Status) hook.Record {
	t.Helper()
	record := f.get(t, id)
	if record.Status != want {
		t.Fatalf("hook %s is %s (error %q), want %s", id, record.Status, record.Error, want)
	}
	return record
}

func (f *fixture) hooksRows(t testing.TB) int64 {
	t.Helper()
	return f.db.Rows(t, "perdure", "hooks")
}

// equal ends the test unless got is want.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}
