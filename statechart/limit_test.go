package statechart_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/perdure/perdure/statechart"
)

func wantLimit(t *testing.T, err error, limit statechart.Limit) {
	t.Helper()
	var exceeded *statechart.LimitError
	if !errors.As(err, &exceeded) || exceeded.Limit != limit {
		t.Fatalf("got %v, want the limit of %s", err, limit)
	}
}

// expired returns an Interrupt that ends a call after some questions.
func expired(after int) func() func() bool {
	return func() func() bool {
		asked := 0
		return func() bool { asked++; return asked > after }
	}
}

// assign returns an assignment of one key, as JSON.
func assign(key, value string) string {
	return fmt.Sprintf(`{"type":"xstate.assign","params":{"assignment":{"%s":%s}}}`, key, value)
}

const raiseE = `{"type":"xstate.raise","params":{"event":{"type":"E"}}}`

// hostile are machines that would use all memory, or all time, for one event E.
var hostile = map[string]struct {
	document string
	limit    statechart.Limit
}{
	"text that doubles": {
		`{"context":{"s":"x"},"on":{"E":{"actions":[` + assign("s", `{"$expr":"context.s + context.s"}`) + `,` + raiseE + `]}}}`, statechart.LimitContext,
	},
	"text that doubles in one expression": {
		`{"context":{"s":"` + strings.Repeat("x", 1000) + `"},"on":{"E":{"actions":[` +
			assign("s", `{"$expr":"`+strings.Repeat("(", 60)+"context.s"+strings.Repeat(" + context.s)", 60)+`"}`) + `,` + raiseE + `]}}}`, statechart.LimitExpression,
	},
	"many texts in a loop": {
		`{"context":{"s":"` + strings.Repeat("x", 1000) + `"},"on":{"E":{"actions":` +
			assign("s", `{"$expr":"map(1..300, map(1..300, context.s + string(#)))"}`) + `}}}`, statechart.LimitExpression,
	},
	"many upper texts in a loop": {
		`{"context":{"s":"` + strings.Repeat("x", 100_000) + `"},"on":{"E":{"actions":` +
			assign("s", `{"$expr":"map(1..10000, upper(context.s))"}`) + `}}}`, statechart.LimitExpression,
	},
	"a list that contains itself": {
		`{"context":{"a":[1]},"on":{"E":{"actions":[` + assign("a", `[{"$from":"context.a"},{"$from":"context.a"}]`) + `,` + raiseE + `]}}}`, statechart.LimitContext,
	},
	"one text in many keys": {
		`{"context":{"s":"` + strings.Repeat("x", 100_000) + `"},"on":{"E":{"actions":` +
			assign("l", "["+strings.Repeat(`{"$from":"context.s"},`, 100)+"1]") + `}}}`, statechart.LimitContext,
	},
	"events that double": {
		`{"on":{"E":{"actions":{"type":"xstate.raise","params":{"event":{"type":"E","a":{"$from":"event"},"b":{"$from":"event"}}}}}}}`, statechart.LimitOutputSize,
	},
	"values that nest": {
		`{"context":{"a":0},"on":{"E":{"actions":[` + assign("a", `[{"$from":"context.a"}]`) + `,` + raiseE + `]}}}`, statechart.LimitNesting,
	},
	"a send to itself": {
		`{"on":{"E":{"actions":{"type":"xstate.sendTo","params":{"actorRef":"#_self","event":{"type":"E"}}}}}}`, statechart.LimitEvents,
	},
	"emits": {
		`{"options":{"maxIterations":1000000},"on":{"E":{"actions":[` + strings.Repeat(`{"type":"xstate.emit","params":{"event":{"type":"X"}}},`, 500) + raiseE + `]}}}`, statechart.LimitOutputs,
	},
	"large emits": {
		`{"context":{"s":"` + strings.Repeat("x", 100_000) + `"},"on":{"E":{"actions":[` +
			strings.Repeat(`{"type":"xstate.emit","params":{"event":{"type":"X","s":{"$from":"context.s"}}}},`, 100) + raiseE + `]}}}`, statechart.LimitOutputSize,
	},
	"timers": {
		`{"on":{"E":{"actions":[` + strings.Repeat(`{"type":"xstate.raise","params":{"event":{"type":"X"},"delay":5}},`, 500) + raiseE + `]}}}`, statechart.LimitOutputs,
	},
	"logs": {
		`{"on":{"E":{"actions":[` + strings.Repeat(`{"type":"xstate.log","params":{"message":"x"}},`, 500) + raiseE + `]}}}`, statechart.LimitOutputs,
	},
	"children with a large context": {
		`{"context":{"s":"` + strings.Repeat("x", 500_000) + `"},"on":{"E":{"actions":[` +
			strings.Repeat(`{"type":"xstate.spawnChild","params":{"src":"kid","input":{"$from":"context.s"}}},`, 12) + raiseE + `]}},
			"machines":{"kid":{"context":{"s":{"$from":"input"}},"states":{}}}}`, statechart.LimitSnapshot,
	},
	"a child that grows": {
		`{"invoke":{"src":"kid","id":"kid"},"on":{"E":{"actions":{"type":"xstate.forwardTo","params":{"actorRef":"kid"}}}},
			"machines":{"kid":{"context":{"s":"x"},"on":{"E":{"actions":[` + assign("s", `{"$expr":"context.s + context.s"}`) + `,` + raiseE + `]}}}}}`, statechart.LimitContext,
	},
	"loops over data": {
		`{"context":{"l":[` + strings.Repeat("1,", 100_000) + `1]},"on":{"E":{"actions":` + assign("x", `{"$expr":"all(context.l, all(context.l, # == 1))"}`) + `}}}`, statechart.LimitTime,
	},
}

func TestOneEventCannotUseUpTheMemoryOrTheTime(t *testing.T) {
	t.Parallel()
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := &statechart.Options{}
			if c.limit == statechart.LimitTime {
				options.Interrupt = expired(1000)
			}
			m, err := statechart.Parse([]byte(c.document), nil, options)
			if err != nil {
				t.Fatal(err)
			}
			tree := start(t, m)
			raw, err := tree.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			_, exceeded := tree.Send(0, statechart.Event{Type: "E"})
			wantLimit(t, exceeded, c.limit)
			tree, err = m.Restore(raw)
			if err != nil {
				t.Fatal(err)
			}
			step, err := tree.Abort(5, exceeded)
			if err != nil || step.Dropped || tree.Status() != statechart.Failed || !strings.Contains(fmt.Sprint(tree.State().Error), exceeded.Error()) {
				t.Errorf("state is %+v after Abort: %v", tree.State(), err)
			}
		})
	}
}

// TestTheHostileMachineAllocatesLittle is not parallel: it measures the memory of
// the process.
func TestTheHostileMachineAllocatesLittle(t *testing.T) { //nolint:paralleltest // it measures memory
	for _, name := range []string{"text that doubles", "text that doubles in one expression", "many texts in a loop", "many upper texts in a loop", "events that double"} {
		tree := start(t, parse(t, hostile[name].document))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tree.Send(0, statechart.Event{Type: "E"})
		runtime.ReadMemStats(&after)
		wantLimit(t, err, hostile[name].limit)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: allocated %d MiB", name, used>>20)
		}
	}
}

func TestLimitsAreOptions(t *testing.T) {
	t.Parallel()
	grow := `{"context":{"s":"x"},"on":{"E":{"actions":` + assign("s", `{"$expr":"context.s + event.s"}`) + `},"S":{"actions":` + assign("s", `"y"`) + `}}}`
	m, err := statechart.Parse([]byte(grow), nil, &statechart.Options{MaxContext: 100})
	if err != nil {
		t.Fatal(err)
	}
	tree := start(t, m)
	event := func(n int) statechart.Event {
		return statechart.Event{Type: "E", Data: map[string]any{"s": strings.Repeat("x", n)}}
	}
	if _, err := tree.Send(0, event(50)); err != nil {
		t.Fatal(err)
	}
	raw, _ := tree.Snapshot()
	_, err = tree.Send(0, event(50))
	wantLimit(t, err, statechart.LimitContext)
	small, err := statechart.Parse([]byte(grow), nil, &statechart.Options{MaxContext: 20})
	if err != nil {
		t.Fatal(err)
	}
	if tree, err = small.Restore(raw); err != nil {
		t.Fatal(err)
	}
	if _, err = tree.Send(0, statechart.Event{Type: "S"}); err != nil {
		t.Errorf("a context that was too large before cannot shrink: %v", err)
	}
}

func TestAbortStopsTheChildrenAndTheTimers(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"id":"m","initial":"a","states":{"a":{"after":{"1000":"b"},"invoke":{"src":"kid","id":"kid"}},"b":{}},
		"machines":{"kid":{"initial":"x","states":{"x":{"after":{"20":"y"}},"y":{}}}}}`)
	tree := start(t, m)
	step, err := tree.Abort(5, errors.New("boom"))
	if err != nil {
		t.Fatal(err)
	}
	cancelled := map[string]bool{}
	for _, o := range step.Timers {
		cancelled[o.Timer.Path] = o.Kind == statechart.CancelAll
	}
	if !cancelled[""] || !cancelled["kid"] {
		t.Errorf("timers: %+v", step.Timers)
	}
	s := tree.State()
	if s.Status != statechart.Failed || s.Value != "a" || len(s.Children) != 0 || fmt.Sprint(s.Error) != "map[$error:boom]" {
		t.Errorf("state: %+v", s)
	}
	if step, err = tree.Send(6, statechart.Event{Type: "E"}); err != nil || !step.Dropped {
		t.Errorf("an event after Abort: %+v, %v", step, err)
	}
}

func TestUniqComparesAsEqualityDoes(t *testing.T) {
	t.Parallel()
	input := map[string]any{"l": []any{1, 1.0, "1", true, nil, nil, []any{1}, []any{1}, map[string]any{"a": 1}, map[string]any{"a": 1}, 2.5, 2.5}}
	got, err := compute(t, `uniq(input.l)`, input)
	if want := `[1 1 true <nil> [1] map[a:1] 2.5]`; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
}
