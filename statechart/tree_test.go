package statechart_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/statechart"
)

// open parses a document that names effects and invocations that are not registered.
func open(tb testing.TB, text string) *statechart.Machine {
	tb.Helper()
	m, err := statechart.Parse([]byte(text), &statechart.Registry{Open: true}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func send(tb testing.TB, tree *statechart.Tree, typ string) *statechart.Step {
	tb.Helper()
	step, err := tree.Send(0, statechart.Event{Type: typ})
	if err != nil {
		tb.Fatal(err)
	}
	return step
}

// rebuild returns the tree after a restart.
func rebuild(tb testing.TB, m *statechart.Machine, tree *statechart.Tree) *statechart.Tree {
	tb.Helper()
	raw, err := tree.Snapshot()
	if err != nil {
		tb.Fatal(err)
	}
	if tree, err = m.Restore(raw); err != nil {
		tb.Fatal(err)
	}
	return tree
}

func TestEventsOfTheMachineCannotBeSentFromOutside(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"id":"m","initial":"a","states":{"a":{"after":{"1000":"b"}},"b":{}}}`)
	tree := start(t, m)
	for _, typ := range []string{"", "*", "xstate.after.1000.m.a", "xstate.stop", "xstate.init", "xstate.error.actor.k", "xstate.done.actor.k", "a\x00"} {
		_, err := tree.Send(0, statechart.Event{Type: typ})
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) || invalid.Field != "event.type" {
			t.Errorf("%q: got %v", typ, err)
		}
	}
	if got := tree.State().Value; got != "a" {
		t.Errorf("state is %v after refused events", got)
	}
	send(t, tree, "x") // and the tree is still usable
}

func TestParseEventRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `{`, `"E"`, `[]`, `{}`, `{"type":1}`, `{"type":""}`, `{"type":"xstate.stop"}`, `{"type":"E","a":"\u0000"}`, `{"type":"E","type":"F"}`, `{"type":"E","a":"` + strings.Repeat("x", 2<<20) + `"}`} {
		_, err := statechart.ParseEvent([]byte(raw))
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%.40s: got %v", raw, err)
		}
	}
	e, err := statechart.ParseEvent([]byte(`{"type":"E","n":12345678901234567,"f":1.5,"i":2.0}`))
	if err != nil || e.Type != "E" || e.Data["n"] != int64(12345678901234567) || e.Data["f"] != 1.5 || e.Data["i"] != int64(2) {
		t.Errorf("got %v, %v", e, err)
	}
}

func TestTimersAreCommandsWithStableKeys(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"id":"m","initial":"a","states":{
		"a":{"after":{"100":"b"},"on":{"AGAIN":{"target":"a","reenter":true}}},"b":{}}}`)
	tree, step, err := m.Start(1000, nil)
	if err != nil || len(step.Timers) != 1 {
		t.Fatalf("got %v, %v", step, err)
	}
	first := step.Timers[0].Timer
	if first.Due != 1100 || first.Delay != 100 || first.ID != "xstate.after.100.m.a" || first.Path != "" {
		t.Errorf("got %+v", first)
	}
	step, err = tree.Send(1040, statechart.Event{Type: "AGAIN"})
	if err != nil || len(step.Timers) != 2 {
		t.Fatalf("got %v, %v", step, err)
	}
	cancel, again := step.Timers[0], step.Timers[1]
	if cancel.Kind != statechart.Cancel || cancel.Timer.Key() != first.Key() {
		t.Errorf("got %+v, want the first timer cancelled", cancel)
	}
	if again.Kind != statechart.Schedule || again.Timer.Key() != first.Key() || again.Timer.Due != 1140 || again.Timer.Sequence <= first.Sequence {
		t.Errorf("got %+v, want it scheduled again", again)
	}
	raw, err := json.Marshal(again.Timer)
	if err != nil {
		t.Fatal(err)
	}
	var stored statechart.Timer
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	tree = rebuild(t, m, tree)
	if _, err = tree.Fire(1140, stored); err != nil || tree.State().Value != "b" {
		t.Errorf("got %v, %v after a timer from storage", tree.State().Value, err)
	}
}

func TestChainedTimersCountFromTheTimeOfFiring(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"initial":"a","states":{"a":{"after":{"10":"b"}},"b":{"after":{"10":"c"}},"c":{}}}`)
	tree, step, _ := m.Start(0, nil)
	step, err := tree.Fire(10, step.Timers[0].Timer)
	if err != nil {
		t.Fatal(err)
	}
	last := step.Timers[len(step.Timers)-1].Timer
	if last.Due != 20 {
		t.Errorf("next timer is due at %d, want 20", last.Due)
	}
}

func TestTimersOfAnActorThatWasReplacedAreDropped(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"initial":"a","states":{"a":{"invoke":{"id":"k","src":"kid"},"on":{"AGAIN":{"target":"a","reenter":true}}}},
		"machines":{"kid":{"initial":"x","states":{"x":{"after":{"10":"y"}},"y":{}}}}}`)
	tree, step, _ := m.Start(0, nil)
	old := step.Timers[0].Timer
	step = send(t, tree, "AGAIN")
	var fresh statechart.Timer
	all := 0
	for _, o := range step.Timers {
		if o.Kind == statechart.CancelAll && o.Timer.Path == old.Path && o.Timer.Generation == old.Generation {
			all++
		}
		if o.Kind == statechart.Schedule {
			fresh = o.Timer
		}
	}
	if all != 1 || fresh.Path != "k" || fresh.Key() == old.Key() {
		t.Errorf("got %+v", step.Timers)
	}
	step, err := tree.Fire(10, old)
	if err != nil || !step.Dropped || tree.State().Children[0].Value != "x" {
		t.Errorf("late timer: %+v, %v, child in %v", step, err, tree.State().Children[0].Value)
	}
	if _, err = tree.Fire(10, fresh); err != nil || tree.State().Children[0].Value != "y" {
		t.Errorf("timer: %v, child in %v", err, tree.State().Children[0].Value)
	}
}

func TestLateResultsOfTasksAreDropped(t *testing.T) {
	t.Parallel()
	m := open(t, `{"initial":"a","context":{"got":null},"states":{
		"a":{"invoke":{"id":"pay","src":"charge","input":{"n":1},
			"onDone":{"target":"b","actions":{"type":"xstate.assign","params":{"assignment":{"got":{"$from":"event.output"}}}}}},
			"on":{"AGAIN":{"target":"a","reenter":true}}},"b":{}}}`)
	tree, step, _ := m.Start(0, nil)
	first := step.Invocations[0]
	if !first.Start || first.Path != "pay" || first.Src != "charge" {
		t.Errorf("got %+v", first)
	}
	step = send(t, tree, "AGAIN")
	if len(step.Invocations) != 2 || step.Invocations[0].Start || step.Invocations[0].Generation != first.Generation {
		t.Fatalf("got %+v, want the first stopped and another started", step.Invocations)
	}
	second := step.Invocations[1]
	tree = rebuild(t, m, tree)
	if pending := tree.Pending(); len(pending) != 1 || pending[0].Generation != second.Generation {
		t.Errorf("pending are %+v", pending)
	}
	step, err := tree.Complete(0, first.Path, first.Generation, "late")
	if err != nil || !step.Dropped || tree.State().Value != "a" {
		t.Errorf("late result: %+v, %v", step, err)
	}
	if _, err = tree.Complete(0, second.Path, second.Generation, "paid"); err != nil || tree.State().Context["got"] != "paid" {
		t.Errorf("got %v, %v", tree.State().Context, err)
	}
	step, err = tree.Fail(0, second.Path, second.Generation, errors.New("twice"))
	if err != nil || !step.Dropped {
		t.Errorf("second result: %+v, %v", step, err)
	}
}

func TestFailureOfATaskCarriesItsText(t *testing.T) {
	t.Parallel()
	m := open(t, `{"initial":"a","context":{"why":null},"states":{"a":{"invoke":{"id":"k","src":"x",
		"onError":{"actions":{"type":"xstate.assign","params":{"assignment":{"why":{"$from":"event.error.message"}}}}}}}}}`)
	tree, step, _ := m.Start(0, nil)
	if _, err := tree.Fail(0, "k", step.Invocations[0].Generation, errors.New("no money")); err != nil {
		t.Fatal(err)
	}
	if got := tree.State().Context["why"]; got != "no money" {
		t.Errorf("got %v", got)
	}
}

func TestEffectsHaveUniqueSequencesAcrossRestarts(t *testing.T) {
	t.Parallel()
	m := open(t, `{"entry":["start"],"on":{"E":{"actions":[{"type":"mail","params":{"to":{"$from":"event.to"}}},"count"]}}}`)
	tree, step, _ := m.Start(0, nil)
	seen := []int64{step.Effects[0].Sequence}
	for range 3 {
		tree = rebuild(t, m, tree)
		step, err := tree.Send(0, statechart.Event{Type: "E", Data: map[string]any{"to": "ann"}})
		if err != nil || len(step.Effects) != 2 || step.Effects[0].Name != "mail" || step.Effects[0].Params["to"] != "ann" {
			t.Fatalf("got %+v, %v", step, err)
		}
		for _, e := range step.Effects {
			if e.Sequence <= seen[len(seen)-1] {
				t.Errorf("sequence %d after %v", e.Sequence, seen)
			}
			seen = append(seen, e.Sequence)
		}
	}
}

func TestRunawayTreesAreStopped(t *testing.T) {
	t.Parallel()
	pingPong := `{"invoke":{"id":"k","src":"kid"},
		"on":{"GO":{"actions":{"type":"xstate.sendTo","params":{"actorRef":"k","event":{"type":"PING"}}}}},
		"machines":{"kid":{"on":{"PING":{"actions":{"type":"xstate.sendTo","params":{"actorRef":"#_parent","event":{"type":"GO"}}}}}}}}`
	m := parse(t, pingPong)
	tree := start(t, m)
	before, _ := tree.Snapshot()
	if _, err := tree.Send(0, statechart.Event{Type: "GO"}); !errors.Is(err, statechart.ErrRunaway) {
		t.Fatalf("got %v", err)
	}
	if _, err := tree.Send(0, statechart.Event{Type: "X"}); !errors.Is(err, statechart.ErrRunaway) {
		t.Errorf("got %v from a tree that is unusable", err)
	}
	if _, err := m.Restore(before); err != nil {
		t.Errorf("the last snapshot: %v", err)
	}
}

func TestAMachineThatStartsItselfForeverFails(t *testing.T) {
	t.Parallel()
	tree := start(t, parse(t, `{"invoke":{"src":"kid"},"machines":{"kid":{"invoke":{"src":"kid"}}}}`))
	if got := tree.Status(); got != statechart.Failed {
		t.Errorf("status is %s", got)
	}
}

func TestEndlessEventlessTransitionsKeepTheStateBefore(t *testing.T) {
	t.Parallel()
	doc := `{"id":"m","initial":"a","context":{"n":0},"states":{"a":{"on":{"GO":"b"}},
		"b":{"always":{"guard":{"$expr":"context.n >= 0"},"target":"c","actions":{"type":"xstate.assign","params":{"assignment":{"n":{"$expr":"context.n + 1"}}}}}},
		"c":{"always":{"guard":{"$expr":"true"},"target":"b"}}}}`
	tree := start(t, parse(t, doc))
	send(t, tree, "GO")
	s := tree.State()
	if s.Status != statechart.Failed || s.Value != "a" || s.Context["n"] != int64(0) || !strings.Contains(s.Error.(map[string]any)["$error"].(string), "Infinite loop") {
		t.Errorf("got %+v", s)
	}
}

func TestStopEndsEverything(t *testing.T) {
	t.Parallel()
	m := open(t, `{"invoke":[{"id":"k","src":"kid"},{"id":"x","src":"task"}],"exit":"bye","after":{"50":{}},
		"machines":{"kid":{"after":{"5":{}}}}}`)
	tree, _, _ := m.Start(0, nil)
	step, err := tree.Stop(1)
	if err != nil || tree.Status() != statechart.Stopped || len(step.Timers) != 2 || len(step.Invocations) != 1 || len(step.Effects) != 0 {
		t.Errorf("got %+v, %v", step, err)
	}
	if step := send(t, tree, "E"); !step.Dropped {
		t.Error("an event after the end was not dropped")
	}
}

func TestUnknownNamesCanBeAllowedForLookingAtAMachine(t *testing.T) {
	t.Parallel()
	m, err := statechart.Parse([]byte(`{"id":"m","initial":"a","states":{"a":{"entry":"x","invoke":{"src":"y"},"on":{"E":{"guard":"g","target":"b"},"F":"b"}},"b":{"after":{"d":"a"}}}}`),
		nil, &statechart.Options{AllowUnknown: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []string{"E", "F"} {
		tree := start(t, m)
		if send(t, tree, typ); tree.Status() != statechart.Failed {
			t.Errorf("%s: status is %s", typ, tree.Status())
		}
	}
}

func TestTreesOfOneMachineRunConcurrently(t *testing.T) {
	t.Parallel()
	m := parse(t, playerJSON)
	done := make(chan *statechart.Tree)
	for range 4 {
		go func() {
			tree, _, err := m.Start(0, nil)
			for range 100 {
				for _, typ := range []string{"PLAY", "NEXT", "PAUSE", "MUTE", "DIM"} {
					if err == nil {
						_, err = tree.Send(0, statechart.Event{Type: typ})
					}
				}
			}
			done <- tree
		}()
	}
	want, _ := (<-done).Snapshot()
	for range 3 {
		if got, _ := (<-done).Snapshot(); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAPanicOfARegisteredFunctionFailsOnlyTheActor(t *testing.T) {
	t.Parallel()
	bad := func() { panic("oops") }
	reg := &statechart.Registry{
		Guards: map[string]statechart.Guard{"g": func(statechart.Args) (bool, error) { bad(); return true, nil }},
		Delays: map[string]statechart.Delay{"d": func(statechart.Args) (float64, error) { bad(); return 0, nil }},
		Actions: map[string]statechart.Action{
			"a": statechart.Assign(func(statechart.Args) (map[string]any, error) { bad(); return nil, nil }),
			"c": statechart.Check(func(statechart.Args) error { bad(); return nil }),
		},
	}
	m, err := statechart.Parse([]byte(`{"initial":"x","states":{"y":{"after":{"d":{}}},"x":{"on":{
		"G":{"guard":"g"},"A":{"actions":"a"},"C":{"actions":"c"},"D":"y"}}}}`), reg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []string{"G", "A", "C", "D"} {
		tree := start(t, m)
		send(t, tree, typ)
		s := tree.State()
		raw, _ := json.Marshal(s.Error)
		if s.Status != statechart.Failed || s.Value != "x" || !strings.Contains(string(raw), "panic: oops") {
			t.Errorf("%s: got %+v", typ, s)
		}
	}
}
