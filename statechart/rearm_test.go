package statechart_test

import (
	"reflect"
	"testing"

	"github.com/perdure/perdure/statechart"
)

func TestRearmSchedulesWhatASnapshotOfXStateLacks(t *testing.T) {
	t.Parallel()
	m, err := statechart.Parse([]byte(`{
		"id": "m", "initial": "a", "context": {"wait": 30},
		"states": {"a": {"after": {"1000": "b", "patience": "b"}, "entry": {"type": "xstate.raise", "params": {"event": {"type": "T"}, "delay": 5}},
			"invoke": {"src": "kid", "id": "kid"}}, "b": {"after": {"7": "a"}}},
		"delays": {"patience": {"$from": "context.wait"}},
		"machines": {"kid": {"id": "kid", "initial": "x", "states": {"x": {"after": {"20": "y"}}, "y": {}}}}
	}`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := m.Restore([]byte(`{"status": "active", "value": "a", "context": {"wait": 30}, "historyValue": {},
		"children": {"kid": {"src": "kid", "syncSnapshot": false, "snapshot": {"status": "active", "value": "x", "context": {}, "historyValue": {}, "children": {}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	step, err := tree.Rearm(100)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, o := range step.Timers {
		got[o.Timer.Path+" "+o.Timer.ID] = o.Timer.Due
	}
	want := map[string]int64{" xstate.after.1000.m.a": 1100, " xstate.after.patience.m.a": 130, "kid xstate.after.20.kid.x": 120}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("scheduled %v, want %v", got, want)
	}
	if step, err = tree.Fire(1100, step.Timers[0].Timer); err != nil || tree.State().Value != "b" {
		t.Fatalf("value is %v after %v: %v", tree.State().Value, step, err)
	}
}
