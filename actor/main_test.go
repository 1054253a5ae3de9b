package actor_test

import (
	"os"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child()) // a test runs its own binary as another process
	}
	testdb.Main(m)
}

// Conformance has a case for each thing that actors do, the same for all
// databases that carry them. The files conform_*_test.go add them by theme. A
// number in the name of a case is that of section 6 of the notes on actors.
type Conformance struct{}

func TestConformance(t *testing.T) {
	enginetest.Conform(t, Conformance{}, everywhere...)
}

// noon is when the clocks of the tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The callers of the tests.
var (
	alice  = actor.Caller{Kind: actor.Client, ID: "alice"}
	bob    = actor.Caller{Kind: actor.Client, ID: "bob"}
	biller = actor.Caller{Kind: actor.Service, ID: "biller"}
	system = actor.Caller{Kind: actor.System}
)

// fixture is an engine with actors on a clock that the test moves.
type fixture struct {
	db     enginetest.Database
	clock  *perduretest.Clock
	eng    *perdure.Engine
	actors *actor.Actors
	// document is that of the type w, for restarts.
	document string
}

func newFixture(t testing.TB, db enginetest.Database, options *actor.Options) *fixture {
	t.Helper()
	f := &fixture{db: db, clock: perduretest.NewClock(noon)}
	f.reopen(t, options)
	return f
}

// reopen makes a new process: an engine and actors that have seen nothing.
func (f *fixture) reopen(t testing.TB, options *actor.Options) {
	t.Helper()
	f.eng = f.db.Open(t, &perdure.Options{Clock: f.clock})
	f.actors = newActors(t, f.eng, options)
}

func newActors(t testing.TB, eng *perdure.Engine, options *actor.Options) *actor.Actors {
	t.Helper()
	var o actor.Options
	if options != nil {
		o = *options
	}
	if o.Random == nil {
		o.Random = func() float64 { return 0 }
	}
	if o.OnError == nil {
		o.OnError = func(err error) { t.Errorf("actors: %v", err) }
	}
	actors, err := actor.New(eng, &o)
	enginetest.NoError(t, err)
	return actors
}

// register registers a type of which the document is given.
func (f *fixture) register(t testing.TB, name, document string, options *actor.TypeOptions) {
	t.Helper()
	enginetest.NoError(t, f.actors.Register(name, []byte(document), options))
}

func (f *fixture) spawn(t testing.TB, ref actor.Ref) actor.Receipt {
	t.Helper()
	r, err := f.actors.Spawn(enginetest.Context(t), ref, system, nil, nil)
	enginetest.NoError(t, err)
	return r
}

func (f *fixture) send(t testing.TB, ref actor.Ref, event string) actor.Receipt {
	t.Helper()
	r, err := f.actors.Send(enginetest.Context(t), ref, system, statechart.Event{Type: event}, nil)
	enginetest.NoError(t, err)
	return r
}

// value returns the state value that is stored of an actor.
func (f *fixture) value(t testing.TB, ref actor.Ref) any {
	t.Helper()
	v, err := f.actors.Snapshot(enginetest.Context(t), ref, system)
	enginetest.NoError(t, err)
	return v.Value
}

// equal ends the test unless got is want.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}
