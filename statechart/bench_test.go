package statechart_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/statechart"
)

const toggleJSON = `{"id":"toggle","initial":"off","states":{"off":{"on":{"TOGGLE":"on"}},"on":{"on":{"TOGGLE":"off"}}}}`

// playerJSON has hierarchy, parallel regions, guards, assigns, eventless
// transitions and a timer.
const playerJSON = `{"id":"player","type":"parallel","context":{"track":0,"volume":5},
"states":{
  "transport":{"initial":"stopped","states":{
    "stopped":{"on":{"PLAY":"running"}},
    "running":{"initial":"playing","on":{"STOP":"stopped"},"after":{"60000":"stopped"},"states":{
      "playing":{"on":{"PAUSE":"paused","NEXT":{"target":"playing","reenter":true,
        "actions":{"type":"xstate.assign","params":{"assignment":{"track":{"$expr":"context.track + 1"}}}}}}},
      "paused":{"on":{"PAUSE":"playing"}}}}}},
  "volume":{"initial":"normal","states":{
    "normal":{"on":{"MUTE":"muted"}},
    "muted":{"on":{"MUTE":"normal"}}}},
  "display":{"initial":"lit","states":{
    "lit":{"always":{"target":"dim","guard":{"type":"expr","params":{"when":"context.track > 1000000000"}}},"on":{"DIM":"dim"}},
    "dim":{"on":{"*":"lit"}}}}}}`

func parse(tb testing.TB, text string) *statechart.Machine {
	tb.Helper()
	m, err := statechart.Parse([]byte(text), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func start(tb testing.TB, m *statechart.Machine) *statechart.Tree {
	tb.Helper()
	tree, _, err := m.Start(0, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

func benchmarkEvents(b *testing.B, text string, types ...string) {
	tree := start(b, parse(b, text))
	events := make([]statechart.Event, len(types))
	for i, typ := range types {
		events[i].Type = typ
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := tree.Send(0, events[i%len(events)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkToggle(b *testing.B) { benchmarkEvents(b, toggleJSON, "TOGGLE") }

func BenchmarkParallelHierarchy(b *testing.B) {
	benchmarkEvents(b, playerJSON, "PLAY", "PAUSE", "MUTE", "PAUSE", "DIM", "MUTE", "STOP", "DIM")
}

func BenchmarkAssignByExpression(b *testing.B) {
	text := strings.Replace(playerJSON, `"initial":"stopped"`, `"initial":"running"`, 1)
	benchmarkEvents(b, text, "NEXT")
}

func BenchmarkSnapshotAndRestore(b *testing.B) {
	m := parse(b, playerJSON)
	tree := start(b, m)
	b.ReportAllocs()
	for b.Loop() {
		raw, err := tree.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		if tree, err = m.Restore(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		parse(b, playerJSON)
	}
}
