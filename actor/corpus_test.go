package actor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/xstatetest"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// TestXStateCorpus runs every case of the conformance corpus as an actor that is
// rebuilt from the database between every two steps (cases 1 to 5 of the notes):
// plainly, and harshly, that is with a spurious wake-up before every step and
// every event delivered twice with the same key. Everyday tests run most cases in one
// of these ways, every fourth harshly, and a part on PostgreSQL and MariaDB; PERDURE_SOAK=2 runs
// all. The environment variable PERDURE_XSTATE_CORPUS names a folder with more cases.
func TestXStateCorpus(t *testing.T) {
	t.Parallel()
	folders := []string{filepath.Join("..", "statechart", "testdata", "corpus")}
	if more := os.Getenv(xstatetest.Variable); more != "" {
		folders = append(folders, more)
	}
	for _, name := range everywhere {
		for _, folder := range folders {
			t.Run(name+"/"+filepath.Base(folder), func(t *testing.T) {
				t.Parallel()
				runCorpus(t, name, sample(t, name, xstatetest.Load(t, folder)))
			})
		}
	}
}

// sample leaves a part of the cases out, unless the tests run for long: the interpreter runs
// all of them in its own tests.
func sample(t *testing.T, name string, all []*xstatetest.Case) []*xstatetest.Case {
	t.Helper()
	every := 3
	switch {
	case enginetest.Soak() > 1:
		every = 1
	case name != enginetest.SQLite:
		every = 20
	}
	var some []*xstatetest.Case
	for i, c := range all {
		if i%every == 0 {
			some = append(some, c)
		}
	}
	return some
}

func runCorpus(t *testing.T, name string, cases []*xstatetest.Case) {
	t.Helper()
	clock := perduretest.NewClock(time.UnixMilli(0))
	eng := enginetest.New(t, name).Open(t, &perdure.Options{Clock: clock})
	matched := 0
	for i, c := range cases {
		modes := []string{"harsh", "plain"}
		if i%16 > 0 && enginetest.Soak() == 1 {
			modes = modes[min(i%4, 1) : min(i%4, 1)+1]
		}
		if t.Run(c.Name, func(t *testing.T) { playCase(t, eng, clock, c, modes) }) {
			matched++
		}
	}
	fmt.Printf("%s: %d/%d cases match\n", name, matched, len(cases))
}

// playCase plays a case in some modes.
func playCase(t *testing.T, eng *perdure.Engine, clock *perduretest.Clock, c *xstatetest.Case, modes []string) {
	t.Helper()
	machine, err := c.Parse()
	if err != nil {
		if c.Divergence == "" {
			t.Fatal(err)
		}
		return // it is refused, as it should be
	}
	for _, mode := range modes {
		clock.Set(time.UnixMilli(0))
		p := &player{c: c, machine: machine, mode: mode, clock: clock}
		p.open(t, eng)
		if err := p.play(t); err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
	}
}

// player plays the script of a case on an actor.
type player struct {
	c       *xstatetest.Case
	machine *statechart.Machine
	mode    string
	clock   *perduretest.Clock
	actors  *actor.Actors
	ref     actor.Ref
	seen    int64 // the last entry of the log that was looked at
	keys    int

	mu      sync.Mutex
	effects []actor.Call
}

func (p *player) open(t *testing.T, eng *perdure.Engine) {
	t.Helper()
	// One at a time: XState runs promises in their order. No cache: the actor is
	// read from the database whenever it is touched.
	p.actors = newActors(t, eng, &actor.Options{Concurrency: 1, CacheBytes: 1})
	p.ref = actor.Ref{Type: p.c.Name, ID: p.mode}
	enginetest.NoError(t, p.actors.Register(p.c.Name, p.c.Document(), &actor.TypeOptions{
		Registry: p.c.Registry(),
		Machine:  statechart.Options{AllowUnreachable: true, AllowCycles: true, MaxIterations: p.c.Iterations},
		Effects:  map[string]actor.Effect{"effect": {Run: p.effect}},
		Invocations: map[string]actor.Invocation{
			"echo": {Run: func(_ context.Context, c actor.Call) (v any, err error) { return v, c.Decode(&v) }},
			"fail": {Run: func(_ context.Context, c actor.Call) (any, error) {
				var v any
				_ = c.Decode(&v)
				return nil, &actor.Rejection{Value: v}
			}},
		},
	}))
}

func (p *player) effect(_ context.Context, c actor.Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects = append(p.effects, c)
	return nil
}

func (p *player) play(t *testing.T) error {
	t.Helper()
	want := p.reference(t)
	_, err := p.actors.Spawn(enginetest.Context(t), p.ref, system, p.c.Input, nil)
	if err != nil {
		return err
	}
	p.settle(t)
	if err := p.check(t, 0, want); err != nil {
		return err
	}
	for i, s := range p.c.Script {
		if i+1 >= len(want) {
			return nil // it is refused, as it should be
		}
		if p.mode == "harsh" {
			p.settle(t)
		}
		if err := p.step(t, s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if err := p.check(t, i+1, want); err != nil {
			return err
		}
	}
	if p.c.Divergence != "" {
		return nil
	}
	r, err := p.actors.Get(enginetest.Context(t), p.ref)
	enginetest.NoError(t, err)
	return p.c.CheckPersisted(r.Snapshot)
}

// reference returns the answers of the interpreter where XState's are not to be
// followed; else XState's.
func (p *player) reference(t *testing.T) []map[string]any {
	t.Helper()
	if p.c.Divergence == "" {
		return p.c.Expected
	}
	sim, step, err := statechart.Simulate(p.machine, p.c.Input, xstatetest.Outcome)
	enginetest.NoError(t, err)
	answers := []map[string]any{p.c.Observe(sim.Now, sim.Tree, step, sim.Timers())}
	for _, s := range p.c.Script {
		if step, err = simulate(sim, s); err != nil {
			return answers
		}
		answers = append(answers, p.c.Observe(sim.Now, sim.Tree, step, sim.Timers()))
	}
	return answers
}

func simulate(sim *statechart.Simulation, s xstatetest.Step) (*statechart.Step, error) {
	switch {
	case s.Event != nil:
		e, err := statechart.ParseEvent(s.Event)
		if err != nil {
			return nil, err
		}
		return sim.Send(e)
	case s.AdvanceMs != nil:
		return sim.Advance(*s.AdvanceMs)
	case s.Resolve != nil:
		return sim.Finish(s.Resolve.Actor, statechart.Outcome{Output: s.Resolve.Output})
	default:
		return sim.Finish(s.Reject.Actor, statechart.Outcome{Output: s.Reject.Error, Failed: true})
	}
}

func (p *player) step(t *testing.T, s xstatetest.Step) error {
	t.Helper()
	ctx := enginetest.Context(t)
	switch {
	case s.Event != nil:
		e, err := statechart.ParseEvent(s.Event)
		if err != nil {
			return err
		}
		if err := p.send(ctx, e); err != nil {
			return err
		}
	case s.AdvanceMs != nil:
		p.advance(t, *s.AdvanceMs)
		return nil
	case s.Resolve != nil:
		_ = p.actors.Resolve(ctx, p.ref, system, s.Resolve.Actor, s.Resolve.Output) // where nobody waits, nothing happens
	case s.Reject != nil:
		_ = p.actors.Reject(ctx, p.ref, system, s.Reject.Actor, s.Reject.Error)
	}
	p.settle(t)
	return nil
}

// send sends an event, harshly twice with the same key.
func (p *player) send(ctx context.Context, e statechart.Event) error {
	p.keys++
	times := 1
	if p.mode == "harsh" {
		times = 2
	}
	for range times {
		if _, err := p.actors.Send(ctx, p.ref, system, e, &actor.SendOptions{Key: fmt.Sprint(p.keys)}); err != nil {
			return err
		}
	}
	return nil
}

// settle runs invocations and effects, but fires no delay: those that an event has
// scheduled for the same millisecond wait until the time goes on.
func (p *player) settle(t *testing.T) {
	t.Helper()
	_, err := p.actors.RunEffects(enginetest.Context(t))
	enginetest.NoError(t, err)
}

// advance lets time pass from delay to delay.
func (p *player) advance(t *testing.T, ms int64) {
	t.Helper()
	end := p.clock.Now().Add(time.Duration(ms) * time.Millisecond)
	for {
		next := p.timers(t)
		if len(next) == 0 || next[0].Due > end.UnixMilli() {
			break
		}
		if due := time.UnixMilli(next[0].Due); due.After(p.clock.Now()) {
			p.clock.Set(due)
		}
		_, err := p.actors.FireDue(enginetest.Context(t))
		enginetest.NoError(t, err)
		p.settle(t)
	}
	p.clock.Set(end)
}

// timers returns the pending delays as the interpreter has them.
func (p *player) timers(t *testing.T) []statechart.Timer {
	t.Helper()
	stored, err := p.actors.Timers(enginetest.Context(t), p.ref)
	enginetest.NoError(t, err)
	timers := make([]statechart.Timer, len(stored))
	for i, s := range stored {
		timers[i] = statechart.Timer{Path: s.Path, ID: sendID(s.ID), Target: s.Target, Event: s.Event, Due: s.Due.UnixMilli()}
	}
	return timers
}

// sendID returns the machine's id of a delay from that of its row.
func sendID(row string) string {
	if at := strings.LastIndex(row, "@"); at >= 0 {
		if _, id, named := strings.Cut(row[at:], "#"); named {
			return id
		}
		return ""
	}
	return row
}

func (p *player) check(t *testing.T, i int, want []map[string]any) error {
	t.Helper()
	ctx := enginetest.Context(t)
	r, err := p.actors.Get(ctx, p.ref)
	if err != nil {
		return err
	}
	tree, err := p.machine.Restore(r.Snapshot)
	if err != nil {
		return err
	}
	step := &statechart.Step{Effects: p.takeEffects()}
	entries, err := p.actors.Log(ctx, p.ref, p.seen, actor.MaxLimit)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p.seen = e.Sequence
		step.Emitted = append(step.Emitted, e.Output.Emitted...)
		step.Logs = append(step.Logs, e.Output.Logs...)
	}
	got := p.c.Observe(p.clock.Now().UnixMilli(), tree, step, p.timers(t))
	answers := *p.c
	answers.Expected = want
	return answers.Check(i, got)
}

// takeEffects returns the effects since the last time, in their order.
func (p *player) takeEffects() []statechart.EffectCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.effects, func(a, b actor.Call) int { return strings.Compare(a.Key, b.Key) })
	var calls []statechart.EffectCall
	for _, c := range p.effects {
		var params map[string]any
		_ = json.Unmarshal(c.Params, &params)
		calls = append(calls, statechart.EffectCall{Path: c.Path, Name: c.Name, Params: params})
	}
	p.effects = nil
	return calls
}
