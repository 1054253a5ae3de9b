package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

// noon is the time at which the old release stopped.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The table of the user, as in the generator.
var (
	accounts = schema.NewTable("accounts", schema.String("owner").Unique(), schema.Int("balance").Default(0))
	bank     = schema.New("bank", accounts)
)

// key decrypts what the generator has encrypted.
const key = "first:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// chart is the machine of all actors, as in the generator.
const chart = `{"initial": "idle", "states": {
	"idle": {"on": {"WAIT": "waiting", "SEND": "sent", "PAY": "paying", "END": "end"}},
	"waiting": {"after": {"10800000": "end"}},
	"sent": {"entry": {"type": "send"}, "on": {"END": "end"}},
	"paying": {"invoke": {"src": "pay", "onDone": "end", "onError": "refused"}},
	"refused": {},
	"end": {"type": "final"}
}}`

// item is the payload of all work. Its label is unique among the work of a kind.
type item struct{ Label string }

// process is a process of this release that serves all that the generator knows.
type process struct {
	t      *testing.T
	clock  *perduretest.Clock
	eng    *perdure.Engine
	whole  bool
	hooks  *hook.Hooks
	alarms *alarm.Alarms
	fsm    *fsm.Machines
	actors *actor.Actors
	worker *task.Worker

	mu   sync.Mutex
	runs []string
}

// ran records that work was run.
func (p *process) ran(kind, label string, attempt, crashes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%s %q attempt %d", kind, label, attempt)
	if crashes > 0 {
		text += fmt.Sprintf(" crashes %d", crashes)
	}
	p.runs = append(p.runs, text)
}

// start opens the database, which migrates it, and registers handlers for everything.
func start(t *testing.T, db enginetest.Database) *process {
	t.Helper()
	keys, err := perdure.ParseKeys(key)
	enginetest.NoError(t, err)
	p := &process{t: t, clock: perduretest.NewClock(noon), whole: db.Name != enginetest.MySQL}
	p.eng = db.Open(t, &perdure.Options{Clock: p.clock, Keys: keys, Outbox: true, Schemas: []*schema.Schema{bank}})
	p.serveHooks()
	if p.whole {
		p.serveAlarms()
		p.serveMachines()
		p.serveActors()
		p.serveTasks()
	}
	return p
}

func (p *process) serveHooks() {
	var err error
	p.hooks, err = hook.New(p.eng, "shop", &hook.Options{Retention: -1, DeadRetention: -1, MaxCrashes: 3})
	enginetest.NoError(p.t, err)
	for _, name := range []string{"main", "other", "live", "dead", "poison new", "poison chosen", "suspect new", "suspect chosen"} {
		_, err := hook.Define(p.hooks, name, func(ctx context.Context, i item) error {
			info := hook.FromContext(ctx)
			p.ran("hook", i.Label, info.Attempt, info.Crashes)
			return nil
		}, nil)
		enginetest.NoError(p.t, err)
	}
}

func (p *process) serveAlarms() {
	var err error
	p.alarms, err = alarm.New(p.eng, &alarm.Options{DeadRetention: -1, MaxCrashes: 3})
	enginetest.NoError(p.t, err)
	for _, name := range []string{"main", "live", "dead", "poison alarm", "suspect alarm"} {
		_, err := alarm.Handle(p.alarms, name, func(ctx context.Context, i item) error {
			info := alarm.FromContext(ctx)
			p.ran("alarm", i.Label, info.Attempt, info.Crashes)
			return nil
		}, nil)
		enginetest.NoError(p.t, err)
	}
}

func (p *process) serveMachines() {
	var err error
	p.fsm, err = fsm.New(p.eng, &fsm.Options{
		Queues:    map[string]int{"main": 10, "live": 10, "dead": 10, "poison instance": 10},
		Retention: -1, DeadRetention: -1, MaxCrashes: 3,
	})
	enginetest.NoError(p.t, err)
	step := func(name string, result func(*fsm.Run[item]) any) fsm.StepOf[item] {
		return fsm.Step(name, func(_ context.Context, r *fsm.Run[item]) (fsm.Outcome, error) {
			p.ran("step "+name, r.State.Label, r.Attempt, r.Crashes)
			return r.Done(result(r)), nil
		}, nil)
	}
	label := func(r *fsm.Run[item]) any { return r.State.Label }
	enginetest.NoError(p.t, p.fsm.Register(
		fsm.Define("order", 1, &fsm.DefinitionOptions[item]{Retry: retry.Fixed(2, 3*time.Hour), KeepHistory: true, Queue: "main"}, step("begin", label),
			step("paid", func(r *fsm.Run[item]) any {
				if r.TimedOut {
					return "timed out"
				}
				return string(r.Awaited[0].Payload)
			}),
			step("join", func(r *fsm.Run[item]) any {
				children, err := r.Children(p.t.Context())
				enginetest.NoError(p.t, err)
				var all []string
				for _, c := range children {
					all = append(all, string(c.Result))
				}
				return strings.Join(all, ",")
			}),
		),
		fsm.Define("part", 1, &fsm.DefinitionOptions[item]{Queue: "main"}, step("begin", label), step("end", label)),
	))
}

func (p *process) serveActors() {
	var err error
	p.actors, err = actor.New(p.eng, &actor.Options{MaxCrashes: 3})
	enginetest.NoError(p.t, err)
	effect := func(_ context.Context, c actor.Call) error {
		p.ran("effect", c.Actor.ID, c.Attempt, c.Crashes)
		return nil
	}
	invocation := func(_ context.Context, c actor.Call) (any, error) {
		p.ran("invocation", c.Actor.ID, c.Attempt, c.Crashes)
		return "paid", nil
	}
	for _, name := range []string{"main", "live", "dead"} {
		enginetest.NoError(p.t, p.actors.Register(name, []byte(chart), &actor.TypeOptions{
			Effects:     map[string]actor.Effect{"send": {Run: effect}},
			Invocations: map[string]actor.Invocation{"pay": {Run: invocation}},
		}))
	}
}

func (p *process) serveTasks() {
	var err error
	send := func(ctx context.Context, payload json.RawMessage) (any, error) {
		var i struct{ Label, Subject string }
		if err := json.Unmarshal(payload, &i); err != nil {
			return nil, err
		}
		info := task.FromContext(ctx)
		p.ran("task", i.Label+i.Subject, info.Attempt, info.Crashes)
		return nil, nil
	}
	p.worker, err = task.NewWorker(p.eng, &task.Options{
		Retention: -1, DeadRetention: -1,
		Senders: map[string]task.Sender{"main": send, "live": send, "dead": send, "email": send},
		Functions: map[string]task.Function{"shop.refuse": func(context.Context, *perdure.Tx, json.RawMessage) (task.Envelope, error) {
			return task.Envelope{}, errors.New("a task that had failed is run")
		}},
	})
	enginetest.NoError(p.t, err)
}

// expect moves the clock, runs what is due to the end, and compares what was run. The
// order does not matter.
func (p *process) expect(after time.Duration, want ...string) {
	p.t.Helper()
	p.clock.Set(noon.Add(after))
	processors := []dispatch.Processor{p.hooks}
	if p.whole {
		processors = append(processors, p.alarms, p.fsm, p.actors, p.worker)
	} else {
		want = slices.DeleteFunc(want, func(run string) bool { return !strings.HasPrefix(run, "hook ") })
	}
	perduretest.Drain(p.t, processors...)
	p.mu.Lock()
	got := p.runs
	p.runs = nil
	p.mu.Unlock()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.t.Errorf("%v after noon: ran\n  %s\nwant\n  %s", after, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
