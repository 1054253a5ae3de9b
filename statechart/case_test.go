package statechart_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/statechart"
)

// The black-box cases about definitions, by their number. Cases 1 to 5 are
// TestXStateCorpus, here and in package actor.

// refused returns the problem that a document has at a place.
func refused(t *testing.T, document, place string) string {
	t.Helper()
	_, err := statechart.Parse([]byte(document), nil, nil)
	var problems statechart.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("%s is not refused: %v", document, err)
	}
	for _, p := range problems {
		if p.Field == place {
			return p.Error()
		}
	}
	t.Fatalf("%s: nothing is said of %s: %v", document, place, err)
	return ""
}

func TestCase6AnAfterThatIsATransitionIsRefused(t *testing.T) {
	t.Parallel()
	reason := refused(t, `{"initial":"a","states":{"a":{"after":{"delay":1000,"target":"b"}},"b":{}}}`, "machine.states.a.after")
	if !strings.Contains(reason, "delay") || !strings.Contains(reason, "target") {
		t.Errorf("the keys are not named: %s", reason)
	}
}

func TestCase7AnArrayOfDelayedTransitionsHasItsDelays(t *testing.T) {
	t.Parallel()
	s, _, err := statechart.Simulate(parse(t, `{"initial":"a","states":{"a":{"after":[{"delay":1000,"target":"b"}]},"b":{}}}`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pass int64
		want string
	}{{999, "a"}, {1, "b"}} {
		if _, err := s.Advance(c.pass); err != nil || s.Tree.State().Value != c.want {
			t.Errorf("at %d it is %v (%v)", s.Now, s.Tree.State().Value, err)
		}
	}
}

func TestCase8UnknownNamesAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for place, document := range map[string]string{
		"machine.on.E.guard":   `{"on":{"E":{"guard":"nobody"}}}`,
		"machine.on.E.actions": `{"on":{"E":{"actions":"nobody"}}}`,
		"machine.invoke.src":   `{"invoke":{"src":"nobody"}}`,
		"machine.after.nobody": `{"after":{"nobody":{}}}`,
	} {
		if reason := refused(t, document, place); !strings.Contains(reason, `"nobody"`) {
			t.Errorf("the name is not told: %s", reason)
		}
	}
}

func TestCase9NullIsRefusedAndNothingForbids(t *testing.T) {
	t.Parallel()
	refused(t, `{"on":{"E":null}}`, "machine.on.E")
	tree := start(t, parse(t, `{"initial":"a","on":{"E":".b"},"states":{"a":{"on":{"E":{}}},"b":{}}}`))
	send(t, tree, "E")
	if got := tree.State().Value; got != "a" {
		t.Errorf("it is %v", got)
	}
}

func TestCase10StatesAreEnteredInTheOrderOfJavaScript(t *testing.T) {
	t.Parallel()
	m := open(t, `{"id":"m","type":"parallel","states":{"z":{"entry":"z"},"2":{"entry":"2"},"a":{"entry":"a"},"1":{"entry":"1"}}}`)
	_, step, err := m.Start(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var entered []string
	for _, e := range step.Effects {
		entered = append(entered, e.Name)
	}
	if want := []string{"1", "2", "z", "a"}; !slices.Equal(entered, want) {
		t.Errorf("entered %v, want %v", entered, want)
	}
}

func TestCase11UnreachableStatesAndIdsThatOccurTwiceAreRefused(t *testing.T) {
	t.Parallel()
	refused(t, `{"initial":"a","states":{"a":{},"island":{}}}`, "machine.states.island")
	refused(t, `{"initial":"a","states":{"a":{"id":"x","on":{"E":"b"}},"b":{"id":"x"}}}`, "machine.states.b")
}

func TestCase12AnEventlessCycleEndsAndLeavesTheStateAsItWas(t *testing.T) {
	t.Parallel()
	document := `{"initial":"calm","context":{"spin":true},"states":{"calm":{"on":{"GO":"left"}},
		"left":{"always":{"target":"right","guard":{"type":"expr","params":{"when":"context.spin"}}}},
		"right":{"always":{"target":"left","guard":{"type":"expr","params":{"when":"context.spin"}}}}}}`
	m, err := statechart.Parse([]byte(document), nil, &statechart.Options{AllowCycles: true, MaxIterations: 50})
	if err != nil {
		t.Fatal(err)
	}
	tree := start(t, m)
	send(t, tree, "GO")
	state := tree.State()
	if state.Status != statechart.Failed || state.Value != "calm" {
		t.Errorf("it is %v, %s", state.Value, state.Status)
	}
}
