//go:build ignore

// Command generate fills databases with live work of every kind. It runs with the code of
// commit 29bc898, the last commit with the wide table of hooks; see README.md.
//
// A dead process is simulated by an engine with its own clock, which stands still: its
// handlers never return, and its leases are never renewed. The program ends without
// draining, like a killed process.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/statechart"
	"github.com/perdure/perdure/task"
)

var (
	ctx  = context.Background()
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	accounts = schema.NewTable("accounts", schema.String("owner").Unique(), schema.Int("balance").Default(0))
	bank     = schema.New("bank", accounts)
)

// shared is the id of an instance and of a hook.
const shared = "0195a000-0000-7000-8000-00000000abcd"

// key encrypts the data that its process writes.
const key = "first:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// item is the payload of all work.
type item struct{ Label string }

// process is one process of the old release.
type process struct {
	clock  *perduretest.Clock
	eng    *perdure.Engine
	hooks  *hook.Hooks
	alarms *alarm.Alarms
	fsm    *fsm.Machines
	actors *actor.Actors
	worker *task.Worker
	whole  bool
	// running receives the labels of work that never ends.
	running chan string
}

// handle is the code of all work. The first word of the label determines the outcome.
func (p *process) handle(label string, attempt int) error {
	word, _, _ := strings.Cut(label, " ")
	switch {
	case word == "failed", word == "retrying", word == "late" && attempt == 1:
		return fmt.Errorf("refused %s, attempt %d", label, attempt)
	case word == "dead", word == "live", word == "poison", word == "suspect":
		p.running <- label
		select {}
	}
	return nil
}

// open starts a process at a given time. It serves the hooks, alarms, queues and types of
// name.
func open(dsn string, at time.Time, name string, keys *perdure.Keys) *process {
	clock := perduretest.NewClock(at)
	eng, err := perdure.Open(ctx, dsn, &perdure.Options{Clock: clock, Keys: keys, Outbox: true, Schemas: []*schema.Schema{bank}})
	check(err)
	p := &process{clock: clock, eng: eng, whole: !strings.HasPrefix(dsn, "mysql"), running: make(chan string, 100)}
	chance := func() float64 { return 0 }
	p.hooks = must(hook.New(eng, "shop", &hook.Options{MaxCrashes: 3, Random: chance}))
	must(hook.Define(p.hooks, name, func(ctx context.Context, i item) error { return p.handle(i.Label, hook.FromContext(ctx).Attempt) }, nil))
	if !p.whole {
		return p
	}
	p.alarms = must(alarm.New(eng, &alarm.Options{MaxCrashes: 3, Random: chance}))
	must(alarm.Handle(p.alarms, name, func(ctx context.Context, i item) error { return p.handle(i.Label, alarm.FromContext(ctx).Attempt) }, nil))
	p.fsm = must(fsm.New(eng, &fsm.Options{Queues: map[string]int{name: 10}, MaxCrashes: 3, Random: chance}))
	check(p.fsm.Register(p.order(), p.part()))
	p.actors = must(actor.New(eng, &actor.Options{MaxCrashes: 3, Random: chance}))
	effect := func(_ context.Context, c actor.Call) error { return p.handle(c.Actor.ID, c.Attempt) }
	invocation := func(_ context.Context, c actor.Call) (any, error) { return "paid", p.handle(c.Actor.ID, c.Attempt) }
	policy := retry.Fixed(2, 3*time.Hour)
	types := []string{name}
	if name == "reader" {
		types = []string{"main", "live", "dead"}
	}
	for _, typ := range types {
		check(p.actors.Register(typ, []byte(chart), &actor.TypeOptions{
			Effects: map[string]actor.Effect{"send": {Run: effect, Retry: policy}},
			Tasks:   map[string]actor.Task{"pay": {Run: invocation, Retry: policy}},
		}))
	}
	p.worker = must(task.NewWorker(eng, &task.Options{
		Retry: retry.Fixed(2, time.Hour), Random: chance, MaxCrashes: 3,
		Senders: map[string]task.Sender{strings.ReplaceAll(name, " ", "_"): func(ctx context.Context, payload json.RawMessage) (any, error) {
			var i item
			return nil, errors.Join(json.Unmarshal(payload, &i), p.handle(i.Label, task.FromContext(ctx).Attempt))
		}},
		Functions: map[string]task.Function{"shop.refuse": func(context.Context, *perdure.Tx, json.RawMessage) (task.Envelope, error) {
			return task.Envelope{}, errors.New("refused")
		}},
	}))
	return p
}

// chart has a delay, an effect and an invocation. An event selects the part that an actor
// enters.
const chart = `{"initial": "idle", "states": {
	"idle": {"on": {"WAIT": "waiting", "SEND": "sent", "PAY": "paying", "END": "end"}},
	"waiting": {"after": {"10800000": "end"}},
	"sent": {"entry": {"type": "send"}, "on": {"END": "end"}},
	"paying": {"invoke": {"src": "pay", "onDone": "end", "onError": "refused"}},
	"refused": {},
	"end": {"type": "final"}
}}`

func (p *process) order() *fsm.Definition[item] {
	return fsm.Define("order", 1,
		fsm.Step("begin", func(_ context.Context, r *fsm.Run[item]) (fsm.Outcome, error) {
			word, _, _ := strings.Cut(r.State.Label, " ")
			switch word {
			case "awaiting":
				return r.Await("paid").Within(6 * time.Hour).Then("paid"), nil
			case "parent":
				return r.Spawn(fsm.ChildOf(p.part(), item{"done child"}, nil), fsm.ChildOf(p.part(), item{"waiting child"}, nil)).Then("join"), nil
			}
			return r.Done(r.State.Label), p.handle(r.State.Label, r.Attempt)
		}),
		fsm.Step("paid", func(_ context.Context, r *fsm.Run[item]) (fsm.Outcome, error) { return r.Done(r.TimedOut), nil }),
		fsm.Step("join", func(_ context.Context, r *fsm.Run[item]) (fsm.Outcome, error) { return r.Done(nil), nil }),
	).Retry(retry.Fixed(2, 3*time.Hour)).KeepHistory().Queue("main")
}

func (p *process) part() *fsm.Definition[item] {
	return fsm.Define("part", 1,
		fsm.Step("begin", func(_ context.Context, r *fsm.Run[item]) (fsm.Outcome, error) {
			if r.State.Label == "waiting child" {
				return r.Await("go").Then("end"), nil
			}
			return r.Done(r.State.Label), nil
		}),
		fsm.Step("end", func(_ context.Context, r *fsm.Run[item]) (fsm.Outcome, error) { return r.Done(r.State.Label), nil }),
	).Queue("main")
}

func (p *process) processors() []dispatch.Processor {
	if !p.whole {
		return []dispatch.Processor{p.hooks}
	}
	return []dispatch.Processor{p.hooks, p.alarms, p.fsm, p.actors, p.worker}
}

// drain runs all work that is due at a time.
func (p *process) drain(at time.Time) {
	p.clock.Set(at)
	for ran := 1; ran > 0; {
		ran = 0
		for _, w := range p.processors() {
			ran += must(w.Process(ctx))
		}
	}
}

// die claims work and never finishes it.
func (p *process) die(works int) {
	for _, w := range p.processors() {
		must(w.(dispatch.Starter).Start(ctx))
	}
	for range works {
		fmt.Println("  claimed", <-p.running)
	}
}

func (p *process) trigger(name, label, id string, o hook.TriggerOptions) string {
	o.ID = id
	check(p.eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		id, err = p.hooks.Trigger(tx, name, item{label}, &o)
		return err
	}))
	return id
}

// both triggers a hook with a new id, and a hook with a chosen id.
func (p *process) both(name, label string, o hook.TriggerOptions) [2]string {
	return [2]string{p.trigger(name, label+" new", "", o), p.trigger(name, label+" chosen", "my "+label, o)}
}

func (p *process) schedule(typ, label string, o alarm.ScheduleOptions) {
	check(p.alarms.Schedule(ctx, alarm.ID(label), typ, item{label}, &o))
}

func (p *process) start(label string, o fsm.StartOptions) string {
	return must(fsm.Start(ctx, p.eng, p.order(), item{label}, &o)).ID
}

func (p *process) enqueue(typ, label string, o task.EnqueueOptions) int64 {
	var ticket *task.Ticket
	check(p.eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		ticket, err = task.Enqueue(tx, typ, map[string]string{"task_type": typ, "Label": label, "db_function": "shop.refuse"}, &o)
		return err
	}))
	return ticket.ID
}

var system = actor.Caller{Kind: actor.Service, ID: "generator"}

// spawn creates an actor and sends it an event.
func (p *process) spawn(typ, label, event string) actor.Ref {
	ref := actor.Ref{Type: typ, ID: label}
	must(p.actors.Spawn(ctx, ref, system, nil, nil))
	if event != "" {
		must(p.actors.Send(ctx, ref, system, statechart.Event{Type: event}, nil))
	}
	return ref
}

func main() {
	dir := os.Args[1]
	for _, dsn := range os.Args[2:] {
		name, _, _ := strings.Cut(dsn, ":")
		fmt.Println(name)
		fill(dsn)
		p := open(dsn, noon, "reader", must(perdure.ParseKeys(key)))
		check(os.WriteFile(filepath.Join(dir, name+".json"), must(json.MarshalIndent(p.contents(), "", " ")), 0o644))
		check(p.eng.Close())
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
