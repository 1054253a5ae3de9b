package statechart_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/statechart"
)

func TestPathsOfActorsAreUnambiguous(t *testing.T) {
	t.Parallel()
	m := open(t, `{"entry":{"type":"xstate.spawnChild","params":{"src":"kid","id":"a/b~"}},
		"machines":{"kid":{"invoke":{"id":"c","src":"task"}}}}`)
	tree, step, _ := m.Start(0, nil)
	if step.Invocations[0].Path != "a~1b~0/c" {
		t.Errorf("path is %s", step.Invocations[0].Path)
	}
	if step, err := tree.Complete(0, "a~1b~0/c", step.Invocations[0].Generation, 1); err != nil || step.Dropped {
		t.Errorf("got %+v, %v", step, err)
	}
}

func TestSystemIDsSurviveRestarts(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"initial":"a","context":{"got":0},"states":{"a":{
		"entry":{"type":"xstate.spawnChild","params":{"src":"kid","id":"k","systemId":"bus"}},
		"on":{"GO":{"actions":{"type":"xstate.sendTo","params":{"actorRef":{"systemId":"bus"},"event":{"type":"PING"}}}},
			"PONG":{"actions":{"type":"xstate.assign","params":{"assignment":{"got":{"$expr":"context.got + 1"}}}}}}}},
		"machines":{"kid":{"on":{"PING":{"actions":{"type":"xstate.sendTo","params":{"actorRef":"#_parent","event":{"type":"PONG"}}}}}}}}`)
	tree := rebuild(t, m, start(t, m))
	send(t, tree, "GO")
	if got := tree.State().Context["got"]; got != int64(1) {
		t.Errorf("got %v answers", got)
	}
}

func TestRestoringRepeatsNoSnapshotEvents(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"context":{"seen":0},"invoke":{"id":"k","src":"kid",
		"onSnapshot":{"actions":{"type":"xstate.assign","params":{"assignment":{"seen":{"$expr":"context.seen + 1"}}}}}},
		"machines":{"kid":{}}}`)
	tree := start(t, m)
	before := tree.State().Context["seen"]
	tree = rebuild(t, m, tree)
	send(t, tree, "X")
	if got := tree.State().Context["seen"]; got != before || got != int64(1) {
		t.Errorf("saw %v snapshots before and %v after a restart", before, got)
	}
}

func TestSnapshotsOfXStateAreAccepted(t *testing.T) {
	t.Parallel()
	m := open(t, `{"id":"m","type":"parallel","context":{"n":0},"states":{
		"a":{"initial":"x","states":{"x":{"on":{"E":"y"}},"y":{}}},"b":{"invoke":{"id":"k","src":"job"}}}}`)
	tree, err := m.Restore([]byte(`{"status":"active","value":{"a":"x","b":{}},"historyValue":{},"context":{"n":7},
		"children":{"k":{"snapshot":{"status":"active","input":1},"src":"job","syncSnapshot":false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	send(t, tree, "E")
	s := tree.State()
	if !slices.Equal(s.Active, []string{"m", "m.a", "m.a.y", "m.b"}) || s.Context["n"] != int64(7) {
		t.Errorf("got %+v", s)
	}
	if p := tree.Pending(); len(p) != 1 || p[0].Input != int64(1) {
		t.Errorf("pending are %+v", p)
	}
}

func TestSnapshotsThatDoNotSuitTheMachineAreRefused(t *testing.T) {
	t.Parallel()
	m := open(t, `{"id":"m","initial":"a","states":{"a":{"on":{"E":"b"},"invoke":{"id":"k","src":"job"}},"b":{}}}`)
	for name, raw := range map[string]string{
		"no object":     `[]`,
		"no status":     `{"value":"a"}`,
		"unknown state": `{"status":"active","value":"c","context":{}}`,
		"unknown node":  `{"status":"active","nodes":["m","m.c"],"context":{}}`,
		"two states":    `{"status":"active","nodes":["m","m.a","m.b"],"context":{}}`,
		"no state":      `{"status":"active","nodes":["m"],"context":{}}`,
		"unknown actor": `{"status":"active","value":"a","context":{},"children":{"k":{"src":"x","snapshot":{"status":"active"}}}}`,
		"bad child":     `{"status":"active","value":"a","context":{},"children":{"k":7}}`,
		"bad phase":     `{"status":"active","phase":"x","value":"a","context":{}}`,
		"bad history":   `{"status":"active","value":"a","context":{},"historyValue":{"h":[]}}`,
	} {
		_, err := m.Restore([]byte(raw))
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWhatIsStoredCanBeRestored(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"context":{"a":0},"on":{
		"DEEPER":{"actions":{"type":"xstate.assign","params":{"assignment":{"a":[{"$from":"context.a"}]}}}},
		"NUL":{"actions":{"type":"xstate.assign","params":{"assignment":{"a":{"$expr":"fromBase64('AA==')"}}}}}}}`)
	tree := start(t, m)
	for n := range 300 {
		if _, err := tree.Send(0, statechart.Event{Type: "DEEPER"}); err != nil {
			wantLimit(t, err, statechart.LimitNesting)
			if n < 50 {
				t.Errorf("%d levels are refused", n)
			}
			break
		}
		raw, err := tree.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Restore(raw); err != nil {
			t.Fatalf("%d levels were stored but not restored: %v", n, err)
		}
	}
	tree = start(t, m)
	if send(t, tree, "NUL"); tree.Status() != statechart.Failed {
		t.Errorf("status is %s after an assign of NUL", tree.Status())
	}
	_, err := tree.Send(0, statechart.Event{Type: "E", Data: map[string]any{"x\x00": 1}})
	wantInvalid(t, err, "NUL")
}
