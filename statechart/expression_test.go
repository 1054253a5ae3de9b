package statechart_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/statechart"
)

// compute starts a machine whose context is computed from input.
func compute(t *testing.T, expression string, input any) (any, error) {
	t.Helper()
	text, _ := json.Marshal(expression)
	m, err := statechart.Parse([]byte(`{"context":{"v":{"$expr":`+string(text)+`}}}`), nil, nil)
	if err != nil {
		return nil, err
	}
	tree, _, err := m.Start(0, input)
	if err != nil {
		return nil, err
	}
	s := tree.State()
	if s.Status == statechart.Failed {
		return nil, fmt.Errorf("%v", s.Error)
	}
	return s.Context["v"], nil
}

func TestExpressionsComputeWithTheData(t *testing.T) {
	t.Parallel()
	input := map[string]any{"n": 3, "big": int64(9007199254740993), "f": 1.5, "l": []any{1, 2, 3}, "m": map[string]any{"b": 1, "a": 2}, "s": "x"}
	for expression, want := range map[string]string{
		`input.n + 1`:                              `4`,
		`input.n * 2.5`:                            `7.5`,
		`input.n / 2`:                              `1.5`,
		`input.n / 3`:                              `1`,
		`input.big + 1`:                            `9007199254740994`,
		`input.n in [1, 2, 3]`:                     `true`,
		`input.n == 3 and input.f == 1.5`:          `true`,
		`input.missing ?? "none"`:                  `"none"`,
		`input?.a?.b`:                              `null`,
		`input.l[input.n - 1]`:                     `3`,
		`len(input.l)`:                             `3`,
		`concat(input.l, [input.s])`:               `[1,2,3,"x"]`,
		`map(input.l, # * 2)`:                      `[2,4,6]`,
		`sum(filter(input.l, # > 1))`:              `5`,
		`keys(input.m)`:                            `["a","b"]`,
		`join(keys(input.m), "-")`:                 `"a-b"`,
		`{"a": input.n, "b": [input.s]}`:           `{"a":3,"b":["x"]}`,
		`input.s + "y"`:                            `"xy"`,
		`input.n > 2 ? "many" : "few"`:             `"many"`,
		`any(input.l, # == 2)`:                     `true`,
		`count(input.l, any([1, 2], # == 1)) >= 0`: `true`,
	} {
		got, err := compute(t, expression, input)
		raw, _ := json.Marshal(got)
		if err != nil || string(raw) != want {
			t.Errorf("%s: got %s, %v, want %s", expression, raw, err, want)
		}
	}
}

func TestExpressionsHaveLimits(t *testing.T) {
	t.Parallel()
	for expression, text := range map[string]string{
		`now()`:                            "unknown name now",
		`values(input)`:                    "unknown name values",
		`repeat("x", 1000)`:                "unknown name repeat",
		`reduce(input.l, #acc + #, 0)`:     "unknown name reduce",
		`let x = 1; x + x`:                 "declares a variable",
		`env["HOME"]`:                      "unknown name env",
		`1..1000000`:                       "memory budget",
		strings.Repeat("1 + ", 2000) + `1`: "longer than",
		strings.Repeat("1+", 900) + `1`:    "maximum allowed nodes",
		`any(input.l, any(input.l, any(input.l, # == 1)))`: "more than 2 loops",
		`input.n + "x"`:                      "invalid operation",
		`context.n`:                          "unknown name context",
		`join(map(1..2000, input.long), "")`: "join gives more than",
	} {
		input := map[string]any{"n": 1, "l": []any{1}, "long": strings.Repeat("x", 1000)}
		if got, err := compute(t, expression, input); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%.60s: got %v, %v, want %q", expression, got, err, text)
		}
	}
}

func TestADataOnlyMachineNeedsNoRegistry(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"id":"order","initial":"open","context":{"items":[],"total":0},
		"delays":{"PATIENCE":{"$expr":"context.total > 100 ? 2000 : 1000"}},
		"states":{
			"open":{"on":{
				"ADD":{"actions":{"type":"xstate.assign","params":{"assignment":{
					"items":{"$expr":"concat(context.items, [event.name])"},"total":{"$expr":"context.total + event.price"}}}}},
				"PAY":{"target":"waiting","guard":{"type":"expr","params":{"when":"context.total >= 10"}}}}},
			"waiting":{"after":{"PATIENCE":"late"},"on":{"MONEY":"done"}},
			"late":{"on":{"MONEY":"done"}},
			"done":{"type":"final","output":{"paid":{"$from":"context.total"}}}},
		"output":{"$from":"event.output"}}`)
	sim, _, err := statechart.Simulate(m, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	steps := func(types ...string) {
		for _, typ := range types {
			data := map[string]any{"name": strings.ToLower(typ), "price": 60.0}
			if _, err := sim.Send(statechart.Event{Type: typ, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
	}
	steps("PAY", "ADD", "ADD", "PAY")
	if timers := sim.Timers(); len(timers) != 1 || timers[0].Due != 2000 || timers[0].ID != "xstate.after.PATIENCE.order.waiting" {
		t.Errorf("timers are %+v", timers)
	}
	if _, err := sim.Advance(2000); err != nil || sim.Tree.State().Value != "late" {
		t.Errorf("got %v, %v", sim.Tree.State().Value, err)
	}
	steps("MONEY")
	if out := sim.Tree.State().Output; fmt.Sprint(out) != "map[paid:120]" {
		t.Errorf("output is %v", out)
	}
}

func TestAnExpressionThatFailsFailsTheActor(t *testing.T) {
	t.Parallel()
	tree := start(t, parse(t, `{"initial":"a","states":{"a":{"on":{"E":{"target":"b","guard":{"type":"expr","params":{"when":"context.n > 1"}}}}},"b":{}}}`))
	send(t, tree, "E")
	s := tree.State()
	if s.Status != statechart.Failed || s.Value != "a" || !strings.Contains(fmt.Sprint(s.Error), "Unable to evaluate guard 'expr'") {
		t.Errorf("got %+v", s)
	}
}

func TestComputedDelaysAreMadeWhole(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int64{"-5": 0, "0.4": 0, "0.5": 1, "59.9": 60, "5184000000": 5184000000} {
		_, step, err := parse(t, `{"context":{"d":`+value+`},"delays":{"D":{"$from":"context.d"}},"after":{"D":{}}}`).Start(0, nil)
		if err != nil || len(step.Timers) != 1 || step.Timers[0].Timer.Delay != want {
			t.Errorf("%s: got %+v, %v, want %d", value, step, err, want)
		}
	}
	for _, value := range []string{`null`, `"10"`, `1e300`, `[]`} {
		tree := start(t, parse(t, `{"context":{"d":`+value+`},"delays":{"D":{"$from":"context.d"}},"after":{"D":{}}}`))
		if tree.Status() != statechart.Failed {
			t.Errorf("%s: status is %s", value, tree.Status())
		}
	}
}
