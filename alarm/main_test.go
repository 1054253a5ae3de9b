package alarm_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child()) // a test runs its own binary as another process
	}
	testdb.Main(m)
}

// Conformance has a case for each thing that alarms do, the same for all
// databases. The files conform_*_test.go add them by theme. A number in the name
// of a case is that of section 6 of the notes on actors.
type Conformance struct{}

func TestConformance(t *testing.T) { enginetest.Conform(t, Conformance{}, databases...) }

// noon is when the fake clocks of the tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is an engine with alarms on a clock that the test moves.
type fixture struct {
	db     enginetest.Database
	clock  *perduretest.Clock
	eng    *perdure.Engine
	alarms *alarm.Alarms
	runs   journal
}

// journal notes what handlers have seen.
type journal struct {
	mu   sync.Mutex
	seen []alarm.Info
}

func (j *journal) add(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, alarm.FromContext(ctx))
}

func (j *journal) all() []alarm.Info {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]alarm.Info(nil), j.seen...)
}

func (j *journal) count() int { return len(j.all()) }

func (j *journal) last() alarm.Info { all := j.all(); return all[len(all)-1] }

// newFixture opens an engine on a fake clock, with alarms.
func newFixture(t *testing.T, db enginetest.Database, options *alarm.Options) *fixture {
	t.Helper()
	f := &fixture{db: db, clock: perduretest.NewClock(noon)}
	f.eng = db.Open(t, &perdure.Options{Clock: f.clock})
	f.alarms = newAlarms(t, f.eng, options)
	return f
}

// newAlarms returns alarms that the test's end waits for. Jitter is off.
func newAlarms(t testing.TB, eng *perdure.Engine, options *alarm.Options) *alarm.Alarms {
	t.Helper()
	var o alarm.Options
	if options != nil {
		o = *options
	}
	if o.Random == nil {
		o.Random = func() float64 { return 0 }
	}
	if o.OnError == nil {
		o.OnError = func(err error) { t.Errorf("alarms: %v", err) }
	}
	alarms, err := alarm.New(eng, &o)
	enginetest.NoError(t, err)
	t.Cleanup(func() {
		if err := alarms.Drain(enginetest.Context(t)); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return alarms
}

// handle sets a handler of a type, which is noted in the journal.
func (f *fixture) handle(t testing.TB, name string, fn func(context.Context, string) error) *alarm.Type[string] {
	t.Helper()
	handled, err := alarm.Handle(f.alarms, name, func(ctx context.Context, payload string) error {
		f.runs.add(ctx)
		if fn == nil {
			return nil
		}
		return fn(ctx, payload)
	}, nil)
	enginetest.NoError(t, err)
	return handled
}

// schedule schedules an alarm that belongs to nobody, with its id as payload.
func (f *fixture) schedule(t testing.TB, id, typ string, options *alarm.ScheduleOptions) alarm.Key {
	t.Helper()
	key := alarm.ID(id)
	enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), key, typ, id, options))
	return key
}

// process fires what is due and ends the test unless that many were fired.
func (f *fixture) process(t testing.TB, want int) {
	t.Helper()
	process(t, f.alarms, want)
}

func process(t testing.TB, alarms *alarm.Alarms, want int) {
	t.Helper()
	n, err := alarms.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	if n != want {
		t.Fatalf("process fired %d alarms, want %d", n, want)
	}
}

// get reads an alarm.
func (f *fixture) get(t testing.TB, key alarm.Key) alarm.Record {
	t.Helper()
	record, err := f.alarms.Get(enginetest.Context(t), key)
	enginetest.NoError(t, err)
	return record
}

// is ends the test unless the alarm has the status.
func (f *fixture) is(t testing.TB, key alarm.Key, want alarm.Status) alarm.Record {
	t.Helper()
	record := f.get(t, key)
	if record.Status != want {
		t.Fatalf("alarm %s is %s (error %q), want %s", key, record.Status, record.Error, want)
	}
	return record
}

// rows ends the test unless there are that many rows.
func (f *fixture) rows(t testing.TB, want int64) {
	t.Helper()
	equal(t, "rows of alarms", f.db.Rows(t, "perdure", "alarms"), want)
}

// wakes ends the test unless the next wake-up is then.
func (f *fixture) wakes(t testing.TB, want time.Time) {
	t.Helper()
	at, err := f.alarms.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "next wake", at, want)
}

// equal ends the test unless got is want.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}
