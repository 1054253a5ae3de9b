package rotate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
)

// many is how many items of each kind are written.
const many = 60

// sleeper closes an hour after it was made, and rings then.
var sleeper = []byte(`{
	"initial": "open", "context": {"public": {}},
	"states": {"open": {"after": {"3600000": "closed"}}, "closed": {"entry": "ring"}}
}`)

// worker is one kind of work in one process.
type worker struct {
	*testing.T
	eng    *perdure.Engine
	failed func(error)
	// processors run the work.
	processors []dispatch.Processor
	// prepare stores an item, and write lets it run.
	prepare, write func(name string) error
	done           atomic.Int64
}

// kinds set up the kinds of work whose values are encrypted. Of signals, an item is
// an instance that waits, encrypted by one process, and a signal of another.
var kinds = map[string]func(*worker){
	"hooks": (*worker).hooks, "alarms": (*worker).alarms, "instances": (*worker).instances, "signals": (*worker).signals, "actors": (*worker).actors,
}

func (w *worker) hooks() {
	hooks, err := hook.New(w.eng, "app", &hook.Options{OnError: w.failed, Concurrency: 10})
	enginetest.NoError(w, err)
	mail, err := hook.Define(hooks, "mail", func(ctx context.Context, _ string) error { return w.did(hook.FromContext(ctx).Attempt) }, nil)
	enginetest.NoError(w, err)
	w.processors = []dispatch.Processor{hooks}
	w.write = func(name string) error {
		return w.eng.Update(w.Context(), func(tx *perdure.Tx) error { _, err := mail.TriggerIn(tx, name, nil); return err })
	}
}

func (w *worker) alarms() {
	alarms, err := alarm.New(w.eng, &alarm.Options{OnError: w.failed, Concurrency: 10})
	enginetest.NoError(w, err)
	_, err = alarm.Handle(alarms, "a", func(ctx context.Context, _ string) error { return w.did(alarm.FromContext(ctx).Attempt) }, nil)
	enginetest.NoError(w, err)
	w.processors = []dispatch.Processor{alarms}
	w.write = func(name string) error {
		return alarms.Schedule(w.Context(), alarm.Of("order", name, "x"), "a", name, &alarm.ScheduleOptions{At: host.Of(w.eng).Clock.Now()})
	}
}

// did counts an item that is run for the first time.
func (w *worker) did(attempt int) error {
	if attempt != 1 {
		w.Errorf("attempt %d", attempt)
	}
	w.done.Add(1)
	return nil
}

func (w *worker) machine(steps ...fsm.StepOf[string]) *fsm.Definition[string] {
	machines, err := fsm.New(w.eng, &fsm.Options{OnError: w.failed})
	enginetest.NoError(w, err)
	d := fsm.Define("order", 1, nil, steps...)
	enginetest.NoError(w, machines.Register(d))
	w.processors = []dispatch.Processor{machines}
	return d
}

func (w *worker) end(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
	return run.Done(run.State), w.did(run.Attempt)
}

func (w *worker) instances() {
	d := w.machine(fsm.Step("end", w.end, nil))
	w.write = func(name string) error {
		_, err := fsm.Start(w.Context(), w.eng, d, name, nil)
		return err
	}
}

func (w *worker) signals() {
	wait := fsm.Step("wait", func(_ context.Context, run *fsm.Run[string]) (fsm.Outcome, error) {
		return run.Await("go").Then("end"), nil
	}, nil)
	d := w.machine(wait, fsm.Step("end", w.end, nil))
	id := func(name string) string { return "00000000-0000-4000-8000-0000000" + name }
	w.prepare = func(name string) error {
		_, err := fsm.Start(w.Context(), w.eng, d, name, &fsm.StartOptions{ID: id(name)})
		return err
	}
	w.write = func(name string) error {
		_, err := fsm.Send(w.Context(), w.eng, id(name), "go", name, nil)
		return err
	}
}

func (w *worker) actors() {
	actors, err := actor.New(w.eng, &actor.Options{OnError: w.failed, Batch: 10})
	enginetest.NoError(w, err)
	ring := actor.Effect{Run: func(context.Context, actor.Call) error { return w.did(1) }}
	enginetest.NoError(w, actors.Register("sleeper", sleeper, &actor.TypeOptions{Effects: map[string]actor.Effect{"ring": ring}}))
	w.processors = []dispatch.Processor{actors}
	w.write = func(name string) error {
		_, err := actors.Spawn(w.Context(), actor.Ref{Type: "sleeper", ID: name}, author, nil, nil)
		return err
	}
}

// newWorker returns a process with some keys that runs one kind of work.
func newWorker(t *testing.T, db enginetest.Database, clock *perduretest.Clock, keys string, setUp func(*worker)) (w *worker, errs func() []error) {
	t.Helper()
	ring, err := perdure.ParseKeys(keys)
	enginetest.NoError(t, err)
	p := &process{}
	w = &worker{T: t, eng: db.Open(t, &perdure.Options{Clock: clock, Keys: ring}), failed: p.failed, prepare: func(string) error { return nil }}
	setUp(w)
	return w, func() []error {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.errs
	}
}

// While a key is replaced, a process without the new key does not hold up the work of
// the others, and no attempt is counted. The clock stands still: work that was put off
// would not be run.
func (Conformance) ProcessesWithDifferentKeysDoNotDelayEachOther(t *testing.T, db enginetest.Database) {
	for kind, setUp := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db, clock := enginetest.New(t, db.Name), newClock()
			old, errs := newWorker(t, db, clock, keyA, setUp)
			fresh, freshErrs := newWorker(t, db, clock, keyB+","+keyA, setUp)
			var others, own []string
			for i := range many {
				others = append(others, fmt.Sprintf("%05d", i))
			}
			for i := range 5 {
				own = append(own, fmt.Sprintf("%05d", many+i))
			}
			for _, name := range append(append([]string{}, others...), own...) {
				enginetest.NoError(t, old.prepare(name))
			}
			perduretest.Drain(t, old.processors...)
			for _, name := range others {
				enginetest.NoError(t, fresh.write(name))
			}
			for _, name := range own { // behind those of the other process
				enginetest.NoError(t, old.write(name))
			}
			clock.Advance(time.Hour)
			perduretest.Drain(t, old.processors...)
			if n := old.done.Load(); n != int64(len(own)) {
				t.Errorf("the process with the old key ran %d items, want its own %d", n, len(own))
			}
			group, err := dispatch.Group(old.processors...)
			enginetest.NoError(t, err)
			if next, err := group.NextWakeAt(t.Context()); err != nil || !next.IsZero() && !next.After(clock.Now()) {
				t.Errorf("it looks again at %v, %v", next, err)
			}
			perduretest.Drain(t, fresh.processors...)
			if n := fresh.done.Load(); n != many {
				t.Errorf("the process with the new key ran %d items, want %d", n, many)
			}
			reported := errs()
			for _, err := range reported {
				if sealed := (*seal.SealedError)(nil); !errors.As(err, &sealed) || sealed.Key != "b" || !strings.Contains(err.Error(), `key "b"`) {
					t.Errorf("reported: %v", err)
				}
			}
			if len(reported) == 0 || len(freshErrs()) != 0 {
				t.Errorf("%d errors with the old key, and with the new one %v", len(reported), freshErrs())
			}
		})
	}
}
