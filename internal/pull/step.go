package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/remote"
)

// stepRunner is the name of the runner of steps in a queue.
func stepRunner(queue string) string { return "step\t" + queue }

// definition is a version of a state machine.
type definition struct {
	name    string
	version int
}

// defined is a definition that workers serve.
type defined struct {
	queue, onCancel string
	steps           []string
}

func (d definition) key(step string) string {
	return fmt.Sprintf("step\t%s\t%d\t%s", d.name, d.version, step)
}

// machineRunner is the runner of one queue: all queues share the Machines.
type machineRunner struct{ *fsm.Machines }

// addSteps makes a session serve steps. The lock must be held.
func (r *runners) addSteps(s *session, scope *auth.WorkerScope, serve Serve) error {
	edge.Default(&serve.Version, 1)
	edge.Default(&serve.Queue, serve.Machine)
	if err := errors.Join(edge.Name("machine", serve.Machine), edge.Name("queue", serve.Queue)); err != nil {
		return err
	}
	if !scope.Allows(KindStep, serve.Machine, serve.Queue) {
		return errForbidden
	}
	id := definition{serve.Machine, serve.Version}
	d := r.defined[id]
	if d == nil {
		d = &defined{queue: serve.Queue, onCancel: serve.OnCancel}
	}
	if d.queue != serve.Queue || d.onCancel != serve.OnCancel || len(d.steps) > 0 && d.steps[0] != serve.Names[0] && !slices.Contains(d.steps, serve.Names[0]) {
		return fault.Invalidf("serves", "must agree with the other workers of machine %s about queue, cancel step and first step", serve.Machine)
	}
	next := &defined{queue: d.queue, onCancel: d.onCancel, steps: slices.Clone(d.steps)}
	for _, step := range serve.Names {
		if !slices.Contains(next.steps, step) {
			next.steps = append(next.steps, step)
		}
	}
	if len(next.steps) > len(d.steps) {
		if err := r.define(id, next); err != nil {
			return err
		}
		r.defined[id] = next
	}
	for _, step := range serve.Names {
		r.serve(s, stepRunner(serve.Queue), id.key(step))
	}
	return nil
}

// define registers a definition and records it, so that its instances can be started. The lock must
// be held.
func (r *runners) define(id definition, d *defined) error {
	if r.machines == nil {
		if err := r.openMachines(d.queue); err != nil {
			return err
		}
	}
	steps := make([]fsm.StepOf[json.RawMessage], len(d.steps))
	for i, name := range d.steps {
		steps[i] = fsm.Step(name, r.step, &fsm.StepOptions{Timeout: noLimit})
	}
	machine := fsm.Define(id.name, id.version, &fsm.DefinitionOptions[json.RawMessage]{Queue: d.queue, OnCancel: d.onCancel}, steps...)
	r.machines.Unregister(id.name, id.version)
	if err := r.machines.Register(machine); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.broker.rt.Timeout)
	defer cancel()
	if err := r.machines.Announce(ctx); err != nil {
		return err
	}
	if err := r.machines.ServeQueue(d.queue, most); err != nil {
		return err
	}
	r.all[stepRunner(d.queue)] = machineRunner{r.machines}
	r.machines.Wake() // instances may wait for the definition
	return nil
}

func (r *runners) openMachines(queue string) (err error) {
	var o fsm.Options
	if r.broker.options.Machines != nil {
		o = *r.broker.options.Machines
	}
	o.Queues, o.InlineSteps, o.OnError = map[string]int{queue: most}, 1, r.broker.options.OnError
	o.Room = func(queue string, running int) int {
		name := stepRunner(queue)
		return r.broker.room(name, running, func(s *session) bool { return s.runners[name] })
	}
	if r.machines, err = fsm.New(r.broker.eng, &o); err != nil {
		return err
	}
	return r.run("step", machineRunner{r.machines})
}

// step lets a worker run a step.
func (r *runners) step(ctx context.Context, run *fsm.Run[json.RawMessage]) (fsm.Outcome, error) {
	data, err := remote.ContextOf(ctx, run)
	if err != nil {
		return fsm.Outcome{}, err
	}
	id := definition{run.Definition, run.Version}
	r.mu.Lock()
	queue, machines := "", r.machines
	if d := r.defined[id]; d != nil {
		queue = d.queue
	}
	r.mu.Unlock()
	w := Work{Kind: KindStep, ID: run.ID, Key: run.ID + "." + run.Step, Name: run.Step, Attempt: run.Attempt, Crashes: run.Crashes, Data: data}
	outcome, err := r.broker.do(ctx, stepRunner(queue), id.key(run.Step), w, decodeStep)
	if err != nil {
		return fsm.Outcome{}, err
	}
	return remote.Decide(ctx, machines, run, outcome.(remote.Answer))
}

func decodeStep(body json.RawMessage) (any, error) {
	a, err := remote.Decode(body)
	if err != nil {
		return nil, err
	}
	for field, text := range map[string]string{"delay": a.Delay, "timeout": a.Timeout, "retry_after": a.RetryAfter} {
		if d, err := time.ParseDuration(text); text != "" && (err != nil || d < 0) {
			return nil, fault.Invalidf(field, "must be a duration such as \"1h30m\"")
		}
	}
	switch {
	case a.Outcome == "page":
		return nil, fault.Invalidf("outcome", "page is only for remote steps")
	case a.Step == "" && slices.Contains([]string{"next", "await", "spawn"}, a.Outcome):
		return nil, fault.Invalidf("step", "must name the next step")
	case a.Outcome == "await" && len(a.Signals) == 0:
		return nil, fault.Invalidf("signals", "must have at least one name")
	}
	return a, nil
}

// unhandle removes the handler of a key that no session serves any more. The lock must be held.
func (r *runners) unhandle(key string) {
	kind, rest, _ := strings.Cut(key, "\t")
	switch kind {
	case KindHook:
		namespace, name, _ := strings.Cut(rest, "\t")
		if h, ok := r.all[hookRunner(namespace)].(*effectRunner); ok {
			h.Remove(name)
		}
	case KindAlarm:
		if a, ok := r.all[KindAlarm].(*alarmRunner); ok {
			a.Unhandle(rest)
		}
	}
}
