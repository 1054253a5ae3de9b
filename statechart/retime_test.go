package statechart_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// randomDelays draws the delays of a state: numbers, and names with a value each.
func randomDelays(rnd *rand.Rand, targets []string) map[string]any {
	after := map[string]any{}
	for range rnd.IntN(3) {
		key := fmt.Sprint(100 * (1 + rnd.IntN(60)))
		if rnd.IntN(4) == 0 {
			key = []string{"short", "long"}[rnd.IntN(2)]
		}
		after[key] = targets[rnd.IntN(len(targets))]
	}
	return after
}

// randomVersion draws a version of a machine. All versions have the same states and
// events, and other delays: two regions of nested states, and a child machine.
func randomVersion(rnd *rand.Rand) ([]byte, map[string]map[string]any) {
	delays := map[string]map[string]any{} // of each state, by its id
	state := func(id string, targets []string, next string) map[string]any {
		delays[id] = randomDelays(rnd, targets)
		return map[string]any{"after": delays[id], "on": map[string]any{"NEXT": next}}
	}
	region := func(id string) map[string]any {
		c := state(id+".c", []string{"a", "b"}, "a")
		c["initial"], c["states"] = "x", map[string]any{"x": state(id+".c.x", []string{"y"}, "y"), "y": state(id+".c.y", []string{"x"}, "x")}
		delete(c["on"].(map[string]any), "NEXT")
		c["on"].(map[string]any)["LEAVE"] = "a"
		return map[string]any{"initial": "a", "states": map[string]any{
			"a": state(id+".a", []string{"b", "c"}, "b"), "b": state(id+".b", []string{"a", "c"}, "c"), "c": c,
		}}
	}
	kid := region("kid")
	kid["id"] = "kid"
	named := map[string]any{"short": 50 * (1 + rnd.IntN(20)), "long": 1000 * (1 + rnd.IntN(20))}
	kid["delays"] = named
	raw, err := json.Marshal(map[string]any{
		"id": "m", "type": "parallel", "delays": named, "machines": map[string]any{"kid": kid},
		"on":     map[string]any{"KID": map[string]any{"actions": map[string]any{"type": "xstate.sendTo", "params": map[string]any{"actorRef": "k", "event": map[string]any{"type": "NEXT"}}}}},
		"states": map[string]any{"p": region("m.p"), "q": region("m.q")},
		"invoke": map[string]any{"src": "kid", "id": "k"},
	})
	if err != nil {
		panic(err)
	}
	return raw, delays
}

// wantedTimers are the ids of the delays of all active states, each with its path.
func wantedTimers(s statechart.State, delays map[string]map[string]any) []string {
	var want []string
	for _, id := range s.Active {
		for key := range delays[id] {
			want = append(want, s.Path+" xstate.after."+key+"."+id)
		}
	}
	for _, c := range s.Children {
		want = append(want, wantedTimers(c, delays)...)
	}
	sort.Strings(want)
	return want
}

func timerIDs(timers []statechart.Timer) []string {
	var ids []string
	for _, t := range timers {
		ids = append(ids, t.Path+" "+t.ID)
	}
	sort.Strings(ids)
	return ids
}

// applied returns timers after a step, as a store keeps them.
func applied(timers []statechart.Timer, step *statechart.Step) []statechart.Timer {
	out := slices.Clone(timers)
	for _, o := range step.Timers {
		out = slices.DeleteFunc(out, func(t statechart.Timer) bool { return t.Key() == o.Timer.Key() })
		if o.Kind == statechart.Schedule {
			out = append(out, o.Timer)
		}
	}
	return out
}

func TestEveryDelayOfTheActiveStatesHasOneTimerAfterAMigration(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100 * enginetest.Soak()) {
		for _, policy := range []statechart.TimerPolicy{statechart.KeepTimers, statechart.RestartTimers, statechart.DropTimers} {
			migrateAtRandom(t, seed, policy)
		}
	}
}

func migrateAtRandom(t *testing.T, seed uint64, policy statechart.TimerPolicy) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 16))
	first, _ := randomVersion(rnd)
	second, delays := randomVersion(rnd)
	sim, _, err := statechart.Simulate(parse(t, string(first)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range rnd.IntN(12) {
		if rnd.IntN(2) == 0 {
			_, err = sim.Advance(int64(rnd.IntN(3000)))
		} else {
			_, err = sim.Send(statechart.Event{Type: []string{"NEXT", "KID", "LEAVE"}[rnd.IntN(3)]})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := sim.Tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	before := sim.Timers()
	tree, err := parse(t, string(second)).Restore(raw)
	if err != nil {
		t.Fatal(err)
	}
	step, err := tree.Retime(sim.Now, raw, before, policy)
	if err != nil {
		t.Fatal(err)
	}
	after := applied(before, step)
	if got, want := timerIDs(after), wantedTimers(tree.State(), delays); !slices.Equal(got, want) {
		t.Fatalf("seed %d, %s: timers are\n%s\nwant\n%s", seed, policy, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, timer := range after {
		checkDue(t, seed, policy, timer, before, sim.Now)
	}
	firesEach(t, seed, string(second), tree, after)
}

// checkDue checks the time of a timer after a migration.
func checkDue(t *testing.T, seed uint64, policy statechart.TimerPolicy, timer statechart.Timer, before []statechart.Timer, now int64) {
	t.Helper()
	want := now + timer.Delay
	if policy == statechart.KeepTimers {
		state := timer.ID[strings.Index(timer.ID[len("xstate.after."):], ".")+len("xstate.after."):]
		for _, old := range before {
			if old.Path == timer.Path && old.ID == timer.ID {
				want = old.Due
				break
			}
			if old.Path == timer.Path && strings.HasSuffix(old.ID, state) && old.ID[:len(old.ID)-len(state)] != timer.ID[:len(timer.ID)-len(state)] {
				want = old.Due - old.Delay + timer.Delay // from when the state was entered
			}
		}
	}
	if timer.Due != want {
		t.Fatalf("seed %d, %s: %s is due at %d, want %d; before: %+v", seed, policy, timer.ID, timer.Due, want, before)
	}
}

// firesEach checks that each timer leads somewhere.
func firesEach(t *testing.T, seed uint64, document string, tree *statechart.Tree, timers []statechart.Timer) {
	t.Helper()
	raw, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, timer := range timers {
		copied, err := parse(t, document).Restore(raw)
		if err != nil {
			t.Fatal(err)
		}
		state := fmt.Sprint(copied.State())
		step, err := copied.Fire(timer.Due, timer)
		if err != nil || step.Dropped || fmt.Sprint(copied.State()) == state {
			t.Fatalf("seed %d: %s fires into nothing: %+v, %v", seed, timer.ID, step, err)
		}
	}
}

func TestARenamedStateKeepsItsTimers(t *testing.T) {
	t.Parallel()
	first := parse(t, `{"id":"m","initial":"a","states":{"a":{"after":{"1000":"b","300":"b"}},"b":{}}}`)
	second := parse(t, `{"id":"m","initial":"alpha","states":{"alpha":{"after":{"1000":"b","5000":"b"}},"b":{}}}`)
	sim, _, err := statechart.Simulate(first, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Advance(200); err != nil {
		t.Fatal(err)
	}
	raw, _ := sim.Tree.Snapshot()
	renamed := strings.ReplaceAll(strings.ReplaceAll(string(raw), `"m.a"`, `"m.alpha"`), `"value":"a"`, `"value":"alpha"`)
	tree, err := second.Restore([]byte(renamed))
	if err != nil {
		t.Fatal(err)
	}
	step, err := tree.Retime(sim.Now, raw, sim.Timers(), statechart.KeepTimers)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, timer := range applied(sim.Timers(), step) {
		got[timer.ID] = timer.Due
	}
	if want := "map[xstate.after.1000.m.alpha:1000 xstate.after.5000.m.alpha:5000]"; fmt.Sprint(got) != want {
		t.Errorf("timers are %v, want %s", got, want)
	}
}

func TestDelayedEventsFollowThePolicyOfAMigration(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"id":"m","initial":"a","entry":[{"type":"xstate.raise","params":{"event":{"type":"X"},"delay":700,"id":"x"}},
		{"type":"xstate.raise","params":{"event":{"type":"Y"},"delay":900}}],"states":{"a":{"after":{"1000":"b"}},"b":{}}}`)
	for policy, want := range map[statechart.TimerPolicy]string{
		statechart.KeepTimers: "[X 700 Y 900 xstate.after.1000.m.a 1000]", statechart.RestartTimers: "[X 900 Y 1100 xstate.after.1000.m.a 1200]",
		statechart.DropTimers: "[xstate.after.1000.m.a 1200]",
	} {
		sim, _, err := statechart.Simulate(m, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sim.Advance(200); err != nil {
			t.Fatal(err)
		}
		raw, _ := sim.Tree.Snapshot()
		step, err := sim.Tree.Retime(sim.Now, raw, sim.Timers(), policy)
		if err != nil {
			t.Fatal(err)
		}
		timers := applied(sim.Timers(), step)
		slices.SortFunc(timers, func(a, b statechart.Timer) int { return int(a.Due - b.Due) })
		var got []any
		for _, timer := range timers {
			got = append(got, timer.Event.Type, timer.Due)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: timers are %v, want %s", policy, got, want)
		}
	}
}
