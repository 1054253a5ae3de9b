package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// neighbours is work of two names in one process: all of the first one hangs.
type neighbours struct {
	*testing.T
	eng     *perdure.Engine
	release chan struct{} // closed when the test ends
	started int           // number of the last started work
	hanging atomic.Int64
	healthy atomic.Int64
}

// id returns an id that is not in use.
func (n *neighbours) id() string { n.started++; return fmt.Sprint(n.started) }

// hang is the code of the first name.
func (n *neighbours) hang(context.Context) error {
	n.hanging.Add(1)
	<-n.release
	return nil
}

// work is the code of the second name.
func (n *neighbours) work(context.Context) error {
	n.healthy.Add(1)
	return nil
}

// run returns the code of a name.
func (n *neighbours) run(name string) func(context.Context) error {
	if name == "hangs" {
		return n.hang
	}
	return n.work
}

// sharing has, for each kind, a Processor of both names and a function that starts work of a
// name.
var sharing = map[string]struct {
	on   []string
	open func(n *neighbours) (p dispatch.Starter, start func(name string, count int))
}{
	"hook": {everywhere, func(n *neighbours) (dispatch.Starter, func(string, int)) {
		hooks, err := hook.New(n.eng, "shop", nil)
		enginetest.NoError(n, err)
		for _, name := range []string{"hangs", "works"} {
			_, err := hook.Define(hooks, name, func(ctx context.Context, _ int) error { return n.run(name)(ctx) }, nil)
			enginetest.NoError(n, err)
		}
		return hooks, func(name string, count int) {
			n.update(count, func(tx *perdure.Tx, i int) error {
				_, err := hooks.TriggerIn(tx, name, i, nil)
				return err
			})
		}
	}},
	"alarm": {everywhere, func(n *neighbours) (dispatch.Starter, func(string, int)) {
		alarms, err := alarm.New(n.eng, nil)
		enginetest.NoError(n, err)
		for _, name := range []string{"hangs", "works"} {
			_, err := alarm.Handle(alarms, name, func(ctx context.Context, _ int) error { return n.run(name)(ctx) }, nil)
			enginetest.NoError(n, err)
		}
		return alarms, func(name string, count int) {
			n.update(count, func(tx *perdure.Tx, _ int) error {
				return alarms.ScheduleIn(tx, alarm.ID(n.id()), name, 1, &alarm.ScheduleOptions{At: time.Now().Add(-time.Second)})
			})
		}
	}},
	"effect": {whole, func(n *neighbours) (dispatch.Starter, func(string, int)) {
		actors, err := actor.New(n.eng, nil)
		enginetest.NoError(n, err)
		for _, name := range []string{"hangs", "works"} {
			document := fmt.Sprintf(`{"initial": "a", "states": {"a": {"entry": {"type": %q}}}}`, name)
			run := func(ctx context.Context, _ actor.Call) error { return n.run(name)(ctx) }
			enginetest.NoError(n, actors.Register(name, []byte(document), &actor.TypeOptions{Effects: map[string]actor.Effect{name: {Run: run}}}))
		}
		return actors, func(name string, count int) {
			for range count {
				_, err := actors.Spawn(n.Context(), actor.Ref{Type: name, ID: n.id()}, actor.Caller{Kind: actor.System}, nil, nil)
				enginetest.NoError(n, err)
			}
		}
	}},
	"definition": {whole, func(n *neighbours) (dispatch.Starter, func(string, int)) { return n.machines("", "") }},
	"system":     {whole, func(n *neighbours) (dispatch.Starter, func(string, int)) { return n.machines("a.example", "b.example") }},
	"task": {whole, func(n *neighbours) (dispatch.Starter, func(string, int)) {
		senders := map[string]task.Sender{}
		for _, name := range []string{"hangs", "works"} {
			senders[name] = func(ctx context.Context, _ json.RawMessage) (any, error) { return nil, n.run(name)(ctx) }
		}
		worker, err := task.NewWorker(n.eng, &task.Options{Senders: senders})
		enginetest.NoError(n, err)
		return worker, func(name string, count int) {
			n.update(count, func(tx *perdure.Tx, _ int) error {
				_, err := task.EnqueueIn(tx, name, map[string]string{"task_type": name}, nil)
				return err
			})
		}
	}},
}

func (n *neighbours) update(count int, fn func(tx *perdure.Tx, i int) error) {
	n.Helper()
	enginetest.NoError(n, n.eng.Update(n.Context(), func(tx *perdure.Tx) error {
		for i := range count {
			if err := fn(tx, i); err != nil {
				return err
			}
		}
		return nil
	}))
}

// machines returns machines whose definitions differ, or have steps that call the systems a and b.
func (n *neighbours) machines(a, b string) (dispatch.Starter, func(name string, count int)) {
	machines, err := fsm.New(n.eng, &fsm.Options{Queues: map[string]int{fsm.DefaultQueue: 20}})
	enginetest.NoError(n, err)
	step := func(name, system string) fsm.StepOf[int] {
		return fsm.Step(name, func(ctx context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), n.run(name)(ctx) }, &fsm.StepOptions{System: system})
	}
	hangs, works := fsm.Define("hangs", 1, nil, step("hangs", a)), fsm.Define("works", 1, nil, step("works", b))
	definitions := map[string]*fsm.Definition[int]{"hangs": hangs, "works": works}
	if a != "" { // one definition, two systems
		both := fsm.Define("both", 1, nil, step("hangs", a), step("works", b))
		enginetest.NoError(n, machines.Register(both))
		definitions["hangs"], definitions["works"] = both, both
	} else {
		enginetest.NoError(n, machines.Register(hangs, works))
	}
	return machines, func(name string, count int) {
		n.update(count, func(tx *perdure.Tx, _ int) error {
			_, err := fsm.StartIn(tx, definitions[name], 1, &fsm.StartOptions{Step: name})
			return err
		})
	}
}

// Work that hangs must not keep other work of the process from running, without any setting.
func TestWorkThatHangsDoesNotHoldUpOtherWork(t *testing.T) {
	t.Parallel()
	for name, k := range sharing {
		for _, database := range k.on {
			t.Run(name+"/"+database, func(t *testing.T) {
				t.Parallel()
				n := &neighbours{T: t, eng: enginetest.New(t, database).Open(t, nil), release: make(chan struct{})}
				p, start := k.open(n)
				start("hangs", 60)
				d, err := dispatch.NewWaker(p, nil)
				enginetest.NoError(t, err)
				d.Start()
				enginetest.Eventually(t, "work hangs", func() bool { return n.hanging.Load() >= 5 })
				for i := range 5 {
					start("works", 4)
					enginetest.Eventually(t, "healthy work runs", func() bool { return n.healthy.Load() >= int64(4*(i+1)) })
				}
				close(n.release)
				enginetest.Eventually(t, "the work that hung has ended", func() bool { return n.hanging.Load() == 60 })
				enginetest.NoError(t, d.Stop(context.Background()))
			})
		}
	}
}
