package statechart_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/statechart"
)

func TestParseNamesThePlaceOfWhatItRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, place, reason string }{
		"not JSON":        {`{"id":`, "machine", "is not JSON"},
		"not an object":   {`[]`, "machine", "must be an object"},
		"text after":      {`{} {}`, "machine", "must not have text after the value"},
		"key twice":       {`{"id":"a","id":"b"}`, "machine", `must not have key "id" twice`},
		"NUL":             {`{"id":"a\u0000"}`, "machine", "contain a NUL"},
		"number":          {`{"context":{"n":1e999}}`, "machine", "a number as large as"},
		"unknown key":     {`{"id":"m","foo":1}`, "machine.foo", "is not a key of a state"},
		"root key below":  {`{"initial":"a","states":{"a":{"context":{}}}}`, "machine.states.a.context", "is not a key of a state"},
		"key of v4":       {`{"on":{"E":{"cond":"x"}}}`, "machine.on.E.cond", "use guard"},
		"odd key":         {`{"on":{"a.*":{"foo":1}}}`, `machine.on["a.*"].foo`, "is not a key of a transition"},
		"no initial":      {`{"states":{"a":{}}}`, "machine.initial", "is required"},
		"bad initial":     {`{"initial":"b","states":{"a":{}}}`, "machine.initial", `is "b", which is not a state below (machine)`},
		"bad type":        {`{"type":"and"}`, "machine.type", `must be one of atomic, compound`},
		"states in final": {`{"type":"final","states":{"a":{}}}`, "machine.states", "must not be below a state of type final"},
		"bad sibling":     {`{"initial":"a","states":{"a":{"on":{"E":"b"}}}}`, "machine.states.a.on.E", `(machine) has no state "b"`},
		"bad id":          {`{"on":{"E":[{"target":"#x"}]}}`, "machine.on.E[0].target", `no state has the id "x"`},
		"root sibling":    {`{"initial":"a","states":{"a":{}},"on":{"E":"a"}}`, "machine.on.E", `did you mean ".a"?`},
		"null":            {`{"on":{"E":null}}`, "machine.on.E", "write {} to forbid"},
		"null event":      {`{"on":{"":"x"}}`, `machine.on[""]`, "use always"},
		"same id": {
			`{"initial":"a","states":{"a":{"id":"x","on":{"E":"b"}},"b":{"id":"x"}}}`,
			"machine.states.b", `has id "x", which machine.states.a already has`,
		},
		"never together": {
			`{"initial":"a","states":{"a":{"on":{"E":{"target":["b","c"]}}},"b":{},"c":{}}}`,
			"machine.states.a.on.E.target", "never active together",
		},
		"unknown guard":        {`{"on":{"E":{"guard":"g"}}}`, "machine.on.E.guard", `names the guard "g", which is not registered`},
		"unknown guard object": {`{"on":{"E":{"guard":{"type":"g"}}}}`, "machine.on.E.guard.type", `names the guard "g"`},
		"unknown nested guard": {
			`{"on":{"E":{"guard":{"type":"xstate.and","params":{"guards":[{"type":"xstate.not","params":{"guard":"g"}}]}}}}}`,
			"machine.on.E.guard.params.guards[0].params.guard", `names the guard "g"`,
		},
		"unknown action":          {`{"entry":["x"]}`, "machine.entry[0]", `names the action "x", which is not registered`},
		"unknown action object":   {`{"exit":{"type":"x"}}`, "machine.exit.type", `names the action "x"`},
		"unknown built-in":        {`{"entry":{"type":"xstate.foo","params":{}}}`, "machine.entry.type", `the built-in action "foo"`},
		"unknown built-in guard":  {`{"always":{"guard":{"type":"xstate.foo"}}}`, "machine.always.guard.type", `the built-in guard "foo"`},
		"unknown argument":        {`{"entry":{"type":"xstate.log","params":{"text":1}}}`, "machine.entry.params.text", "is not an argument"},
		"unknown actor":           {`{"invoke":{"src":"x"}}`, "machine.invoke.src", `names the actor "x", which is not registered`},
		"unknown spawn":           {`{"entry":{"type":"xstate.spawnChild","params":{"src":"x","id":"y"}}}`, "machine.entry.params.src", `names the actor "x"`},
		"unknown delay":           {`{"after":{"x":{}}}`, "machine.after.x", `names the delay "x", which is not registered`},
		"unknown delay of raise":  {`{"entry":{"type":"xstate.raise","params":{"event":{"type":"E"},"delay":"x"}}}`, "machine.entry.params.delay", `names the delay "x"`},
		"after as a transition":   {`{"after":{"delay":1000,"target":"x"}}`, "machine.after", "has the keys delay and target, but its keys are delays"},
		"after without delays":    {`{"after":[{"target":"x"}]}`, "machine.after[0]", "must have a delay"},
		"negative delay":          {`{"after":{"-5":{}}}`, `machine.after.-5`, "must not be negative"},
		"fractional delay":        {`{"after":{"0.5":{}}}`, `machine.after["0.5"]`, "whole number of milliseconds"},
		"NaN delay":               {`{"after":{"NaN":{}}}`, `machine.after.NaN`, "is not registered"},
		"long delay":              {`{"after":{"1e15":{}}}`, `machine.after.1e15`, "at most 100 years"},
		"negative delay of raise": {`{"entry":{"type":"xstate.raise","params":{"event":{"type":"E"},"delay":-1}}}`, "machine.entry.params.delay", "negative"},
		"fractional named delay":  {`{"delays":{"d":1.5}}`, "machine.delays.d", "whole number of milliseconds"},
		"event without type":      {`{"entry":{"type":"xstate.raise","params":{"event":{}}}}`, "machine.entry.params.event", "has no type"},
		"event as text":           {`{"entry":{"type":"xstate.raise","params":{"event":"E"}}}`, "machine.entry.params.event", "must be an object"},
		"bad path":                {`{"entry":{"type":"xstate.log","params":{"message":{"$from":"contxt.a"}}}}`, "machine.entry.params.message.$from", "must start with context or event"},
		"bad expression":          {`{"entry":{"type":"xstate.log","params":{"message":{"$expr":"context.a +"}}}}`, "machine.entry.params.message.$expr", "is not an expression"},
		"unknown variable":        {`{"on":{"E":{"guard":{"type":"expr","params":{"when":"contxt.a"}}}}}`, "machine.on.E.guard.params.when", "unknown name contxt"},
		"guard not a bool":        {`{"on":{"E":{"guard":{"type":"expr","params":{"when":"1 + 1"}}}}}`, "machine.on.E.guard.params.when", "expected bool"},
		"unreachable": {
			`{"initial":"a","states":{"a":{},"b":{"initial":"c","states":{"c":{}}}}}`,
			"machine.states.b", "is not reachable",
		},
		"eventless circle": {
			`{"initial":"a","states":{"a":{"always":"b"},"b":{"initial":"c","states":{"c":{"always":"#a"}}},"d":{"id":"a","always":"b"}}}`,
			"machine.states.b.states.c.always", "cycle without events or guards",
		},
		"eventless assign": {
			`{"always":{"actions":{"type":"xstate.assign","params":{"assignment":{"n":1}}}}}`,
			"machine.always", "taken indefinitely",
		},
		"history of itself": {
			`{"initial":"h","states":{"h":{"type":"history"}}}`,
			"machine.states.h", "itself as its default",
		},
		"root history":   {`{"type":"history"}`, "machine.type", "must not be history for the root"},
		"bad iterations": {`{"options":{"maxIterations":0}}`, "machine.options.maxIterations", "must be between"},
		"in a child":     {`{"invoke":{"src":"kid"},"machines":{"kid":{"on":{"E":"x"}}}}`, "machines.kid.on.E", "the root has no siblings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := statechart.Parse([]byte(c.doc), nil, nil)
			var problems statechart.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			if !slices.ContainsFunc(problems, func(p *fault.Invalid) bool {
				return p.Field == c.place && strings.Contains(p.Reason, c.reason)
			}) {
				t.Errorf("got:\n%v\nwant %s: %s", err, c.place, c.reason)
			}
		})
	}
}

func TestParseReportsAllProblemsUpToALimit(t *testing.T) {
	t.Parallel()
	_, err := statechart.Parse([]byte(`{"foo":1,"entry":"x","on":{"E":null}}`), nil, nil)
	var problems statechart.Problems
	if !errors.As(err, &problems) || len(problems) != 3 {
		t.Errorf("got %v, want three problems", err)
	}
	var invalid *fault.Invalid
	if !errors.As(err, &invalid) {
		t.Error("no *fault.Invalid in it")
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"k%d":1`, i)
	}
	_, err = statechart.Parse([]byte(`{"id":"m"`+many.String()+`}`), nil, nil)
	if !errors.As(err, &problems) || len(problems) != 50 {
		t.Errorf("got %d problems, want 50", len(problems))
	}
}

func TestParseRefusesWhatIsTooLargeQuickly(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"initial":"a","states":{"a":`, 10_000) + "{}" + strings.Repeat("}}", 10_000)
	wide := `{"initial":"s0","states":{"s0":{}` + func() string {
		var b strings.Builder
		for i := range 6000 {
			fmt.Fprintf(&b, `,"s%d":{}`, i+1)
		}
		return b.String()
	}() + `}}`
	for name, c := range map[string]struct{ doc, text string }{
		"nested":   {nested, "nested at most"},
		"brackets": {strings.Repeat("[", 1_000_000), "nested at most"},
		"long":     {`{"id":"` + strings.Repeat("x", 5<<20) + `"}`, "must be at most"},
		"wide":     {wide, "exceeds the limit of 5000 states"},
		"bytes":    {"{\"id\":\"\xff\"}", "must be valid UTF-8"},
	} {
		_, err := statechart.Parse([]byte(c.doc), nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %q", name, err, c.text)
		}
	}
}

func TestParseAcceptsWhatXStateDoes(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"empty":               `{}`,
		"schema and types":    `{"$schema":"x","version":"1","schemas":{},"types":{},"description":"d","meta":{"a":1}}`,
		"forbidden":           `{"on":{"E":{},"F":[],"G":""}}`,
		"delays as floats":    `{"after":{"1e3":{},"2000":{}}}`,
		"array after":         `{"after":[{"delay":10,"actions":[]}]}`,
		"named delay":         `{"delays":{"delay":5},"after":{"delay":{}}}`,
		"guarded circle":      `{"initial":"a","context":{"n":0},"states":{"a":{"always":[{"guard":{"$expr":"context.n > 3"},"target":"c"},{"target":"b"}]},"b":{"always":"a"},"c":{}}}`,
		"reached by history":  `{"initial":"a","states":{"a":{"initial":"x","states":{"x":{"on":{"E":"y"}},"y":{},"h":{"history":"deep"}},"on":{"O":"b"}},"b":{"on":{"I":"#(machine).a.h"}}}}`,
		"reached by route":    `{"initial":"a","states":{"a":{},"b":{"id":"b","route":{}}}}`,
		"reached by onDone":   `{"initial":"a","states":{"a":{"initial":"x","states":{"x":{"type":"final"}},"onDone":"b"},"b":{}}}`,
		"reached by region":   `{"initial":"p","states":{"p":{"type":"parallel","states":{"r":{"initial":"x","states":{"x":{},"y":{}}},"s":{"initial":"u","states":{"u":{"on":{"E":"#(machine).p.r.y"}}}}}}}}`,
		"recursive machines":  `{"invoke":{"src":"kid"},"machines":{"kid":{"initial":"a","states":{"a":{"on":{"E":"b"}},"b":{"invoke":{"src":"kid"}}}}}}`,
		"spelling of v6":      `{"entry":[{"type":"@xstate.raise","event":{"type":"E"},"id":"x","delay":5},{"type":"@xstate.cancel","id":"x"},{"type":"@xstate.log","args":["a"]},{"type":"@xstate.assign","context":{"n":{"@expr":"1 + 1"}}}]}`,
		"input in context":    `{"context":{"a":{"$from":"input.a"},"b":{"$expr":"input?.b ?? 1"}}}`,
		"history with target": `{"initial":"a","states":{"a":{"initial":"x","states":{"x":{},"y":{},"h":{"type":"history","target":"y"}},"on":{"E":".h"}}}}`,
	} {
		if _, err := statechart.Parse([]byte(doc), nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRegistryTakesUnknownNamesForEffectsAndTasks(t *testing.T) {
	t.Parallel()
	doc := `{"entry":["mail",{"type":"bill","params":{"n":1}}],"invoke":[{"src":"charge"},{"src":"kid"}],
		"machines":{"kid":{"entry":"log","invoke":{"src":"ship"}}}}`
	m, err := statechart.Parse([]byte(doc), &statechart.Registry{Open: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Effects(), " "); got != "bill log mail" {
		t.Errorf("effects are %s", got)
	}
	if got := strings.Join(m.Invocations(), " "); got != "charge ship" {
		t.Errorf("tasks are %s", got)
	}
	_, err = statechart.Parse([]byte(`{"on":{"E":{"guard":"g"}},"after":{"d":{}}}`), &statechart.Registry{Open: true}, nil)
	if err == nil || !strings.Contains(err.Error(), `guard "g"`) || !strings.Contains(err.Error(), `delay "d"`) {
		t.Errorf("got %v: guards and delays have to be known", err)
	}
}

func TestEventsAreThoseThatTheDocumentNames(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"initial":"a","states":{"a":{"on":{"B":{},"A.*":"b"},"after":{"5":"b"}},"b":{"on":{"B":{}}}}}`)
	if got := strings.Join(m.Events(), " "); got != "A.* B" {
		t.Errorf("got %s", got)
	}
}

func TestStatesAreThoseThatCanBeActive(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"type":"parallel","states":{"a":{"initial":"x","states":{"x":{"on":{"E":"y","F":"h"}},"y":{"initial":"z","states":{"z":{}}},"h":{"type":"history"}}},"b":{}}}`)
	if got := strings.Join(m.States(), " "); got != "a a.x a.y a.y.z b" {
		t.Errorf("got %s", got)
	}
}
