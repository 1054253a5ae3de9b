package statechart_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/statechart"
)

// A maker draws random machines. Unlike the corpus they have history states
// that are targeted from inside, where XState itself goes wrong.
type maker struct {
	t     *rapid.T
	ids   []string
	count int
}

var eventTypes = []string{"A", "B", "C"}

func (k *maker) chance(percent int) bool { return rapid.IntRange(0, 99).Draw(k.t, "chance") < percent }

func (k *maker) state(depth int) map[string]any {
	id := fmt.Sprintf("s%d", k.count)
	k.count++
	k.ids = append(k.ids, id)
	s := map[string]any{"id": id}
	if depth == 3 || depth > 0 && k.chance(40) {
		return s
	}
	states := map[string]any{}
	n := rapid.IntRange(2, 3).Draw(k.t, "children")
	for range n {
		first := fmt.Sprintf("s%d", k.count)
		states[first] = k.state(depth + 1)
		if s["initial"] == nil {
			s["initial"] = first
		}
	}
	if k.chance(35) {
		s["type"] = "parallel"
		delete(s, "initial")
	}
	if k.chance(60) {
		h := fmt.Sprintf("s%d", k.count)
		k.count++
		k.ids = append(k.ids, h)
		states[h] = map[string]any{"id": h, "type": "history", "history": rapid.SampledFrom([]string{"shallow", "deep"}).Draw(k.t, "history")}
	}
	s["states"] = states
	return s
}

// connect gives states transitions to any others.
func (k *maker) connect(s map[string]any) {
	if s["type"] == "history" {
		return
	}
	on := map[string]any{}
	for _, typ := range eventTypes {
		if k.chance(50) {
			on[typ] = map[string]any{"target": "#" + rapid.SampledFrom(k.ids).Draw(k.t, "target"), "reenter": k.chance(30)}
		}
	}
	s["on"] = on
	tag := s["id"].(string)
	s["entry"] = map[string]any{"type": "enter", "params": map[string]any{"id": tag}}
	s["exit"] = map[string]any{"type": "exit", "params": map[string]any{"id": tag}}
	if k.chance(20) {
		s["after"] = map[string]any{"10": "#" + rapid.SampledFrom(k.ids).Draw(k.t, "target")}
	}
	if states, ok := s["states"].(map[string]any); ok {
		for _, id := range k.ids {
			if c, ok := states[id].(map[string]any); ok {
				k.connect(c)
			}
		}
	}
}

func randomMachine(t *rapid.T) *statechart.Machine {
	k := &maker{t: t}
	root := k.state(0)
	k.ids = k.ids[1:] // the root is never exited when it is a target
	k.connect(root)
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("machine %s", raw)
	m, err := statechart.Parse(raw, &statechart.Registry{Open: true}, &statechart.Options{AllowUnreachable: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return m
}

// ledger checks that entries and exits of each state take turns.
type ledger map[string]bool

func (l ledger) check(t *rapid.T, step *statechart.Step) {
	for _, e := range step.Effects {
		id := e.Params["id"].(string)
		if l[id] == (e.Name == "enter") {
			t.Fatalf("%s of %s twice in a row", e.Name, id)
		}
		l[id] = e.Name == "enter"
	}
}

func TestConfigurationsStayLegalAndSnapshotsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := randomMachine(t)
		sim, step, err := statechart.Simulate(m, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		other, _, _ := statechart.Simulate(m, nil, nil) // hibernates between all steps
		states := ledger{}
		states.check(t, step)
		for range 15 {
			typ := rapid.SampledFrom(eventTypes).Draw(t, "event")
			advance := rapid.IntRange(0, 4).Draw(t, "advance") == 0
			if step, err = play(sim, typ, advance); err != nil {
				t.Fatal(err)
			}
			states.check(t, step)
			before := snapshot(t, other)
			if other.Tree, err = m.Restore(before); err != nil { // refuses illegal configurations
				t.Fatal(err)
			}
			again, err := play(other, typ, advance)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := snapshot(t, sim), snapshot(t, other); string(a) != string(b) {
				t.Fatalf("straight %s\nrestored %s", a, b)
			}
			if a, b := marshal(t, step), marshal(t, again); a != b {
				t.Fatalf("straight %s\nrestored %s", a, b)
			}
			checkActive(t, sim, states)
		}
	})
}

// checkActive checks that the active states are those whose entry was the last
// to run.
func checkActive(t *rapid.T, sim *statechart.Simulation, states ledger) {
	active := map[string]bool{}
	for _, id := range sim.Tree.State().Active {
		active[id] = true
	}
	for id, in := range states {
		if in != active[id] {
			t.Fatalf("%s: entered %v, active %v", id, in, active[id])
		}
	}
}

func play(sim *statechart.Simulation, typ string, advance bool) (*statechart.Step, error) {
	if advance {
		return sim.Advance(10)
	}
	return sim.Send(statechart.Event{Type: typ})
}

func snapshot(t *rapid.T, sim *statechart.Simulation) []byte {
	raw, err := sim.Tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func marshal(t *rapid.T, v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCanonicalValuesStayAsTheyAreWhenStored(t *testing.T) {
	t.Parallel()
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.StringMatching(`[ -~é😀]{0,8}`), func(s string) any { return s }))
	key := rapid.Map(rapid.StringN(0, 4, -1), func(k string) string { return strings.ReplaceAll(k, "\x00", "") })
	value := rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(scalar, 0, 4), func(s []any) any { return s }),
		rapid.Map(rapid.MapOfN(key, scalar, 0, 4), func(m map[string]any) any { return m }))
	m, err := statechart.Parse([]byte(`{"context":{"v":{"$from":"input"}}}`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		tree, _, err := m.Start(0, value.Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Restore(raw)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprintf("%#v", tree.State().Context), fmt.Sprintf("%#v", again.State().Context); a != b {
			t.Fatalf("before %s\nafter %s", a, b)
		}
	})
}
