package statechart_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/perdure/perdure/statechart"
)

func TestADefinitionIsTheDocumentItDescribes(t *testing.T) {
	t.Parallel()
	d := statechart.Def{
		ID: "m", Version: "2", Initial: "b", Begin: []statechart.Call{{Type: "go"}}, Context: map[string]any{"n": 1},
		Delays: map[string]any{"LATER": statechart.Expr("context.n * 1000")}, MaxIterations: 9,
		Machines: map[string]statechart.Def{"kid": {ID: "kid"}},
		States: []statechart.Def{
			{
				Key: "b", Tags: []string{"x"}, Meta: map[string]any{"k": true}, Entry: []statechart.Call{statechart.Set(map[string]any{"n": statechart.From("event.n")})},
				On: []statechart.Transition{
					{Event: "Z", Targets: statechart.To("a"), Guard: statechart.When("context.n > 1")},
					{Event: "A"},
					{Event: "Z", Targets: statechart.To("a", "b"), Reenter: true, Do: []statechart.Call{{Type: "x", Params: map[string]any{"p": 1}}}},
				},
				After:  []statechart.Transition{{Delay: "LATER", Targets: statechart.To("a")}},
				Always: []statechart.Transition{{Guard: &statechart.Call{Type: "g"}, Targets: statechart.To("a")}},
				Invoke: []statechart.Invocation{{ID: "i", Src: "kid", SystemID: "s", Input: 1, Done: []statechart.Transition{{}}, Fail: []statechart.Transition{{}}, Snapshot: []statechart.Transition{{}}}},
			},
			{Key: "a", Type: "final", Output: []any{1}, Description: "the end", Exit: []statechart.Call{{Type: "bye"}}},
			{Key: "h", Type: "history", Deep: true, Target: "a"},
		},
		Done: []statechart.Transition{{Do: []statechart.Call{{Type: "x"}}}},
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"m","version":"2","initial":{"target":"b","actions":["go"]},"onDone":[{"actions":["x"]}],"options":{"maxIterations":9},
		"context":{"n":1},"delays":{"LATER":{"$expr":"context.n * 1000"}},"machines":{"kid":{"id":"kid"}},
		"states":{"b":{"entry":[{"type":"xstate.assign","params":{"assignment":{"n":{"$from":"event.n"}}}}],"tags":["x"],"meta":{"k":true},
			"on":{"Z":[{"target":["a"],"guard":{"type":"expr","params":{"when":"context.n > 1"}}},{"target":["a","b"],"actions":[{"type":"x","params":{"p":1}}],"reenter":true}],"A":[{}]},
			"after":{"LATER":[{"target":["a"]}]},"always":[{"target":["a"],"guard":"g"}],
			"invoke":[{"id":"i","src":"kid","systemId":"s","input":1,"onDone":[{}],"onError":[{}],"onSnapshot":[{}]}]},
		"a":{"type":"final","description":"the end","exit":["bye"],"output":[1]},"h":{"type":"history","target":"a","history":"deep"}}}`
	var got, expected any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("got %s", raw)
	}
}

func TestStatesOfADefinitionKeepTheirOrder(t *testing.T) {
	t.Parallel()
	m, err := statechart.Build(statechart.Def{ID: "m", Type: "parallel", States: []statechart.Def{{Key: "z"}, {Key: "2"}, {Key: "a"}, {Key: "1"}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := start(t, m).State().Active; !reflect.DeepEqual(got, []string{"m", "m.1", "m.2", "m.z", "m.a"}) {
		t.Errorf("got %v, want JavaScript's order", got)
	}
}
