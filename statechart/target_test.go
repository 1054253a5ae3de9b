package statechart_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/statechart"
)

// TestADotTargetsTheStateItself has the answers of XState 5.33.3.
func TestADotTargetsTheStateItself(t *testing.T) {
	t.Parallel()
	logged := func(name string) string {
		return fmt.Sprintf(`"entry":{"type":"xstate.log","params":{"message":"+%s"}},"exit":{"type":"xstate.log","params":{"message":"-%s"}}`, name, name)
	}
	compound := func(more string) string {
		return `{"id":"m","initial":"a","states":{"a":{"initial":"x",` + logged("a") + `,"on":{"E":{"target":"."` + more + `}},
			"states":{"x":{"on":{"N":"y"},` + logged("x") + `},"y":{` + logged("y") + `}}}}}`
	}
	for name, c := range map[string]struct{ document, value, log string }{
		"compound": {compound(``), "map[a:x]", "[-y +x]"},
		"reenter":  {compound(`,"reenter":true`), "map[a:x]", "[-y -a +a +x]"},
		"root":     {`{"id":"m","initial":"a","on":{"E":"."},"states":{"a":{"on":{"N":"b"}},"b":{}}}`, "a", "[]"},
		"atomic":   {`{"id":"m","initial":"a","states":{"a":{` + logged("a") + `,"on":{"E":"."}}}}`, "a", "[]"},
	} {
		tree := start(t, parse(t, c.document))
		send(t, tree, "N")
		step, err := tree.Send(0, statechart.Event{Type: "E"})
		if err != nil {
			t.Fatal(err)
		}
		log := []any{}
		for _, l := range step.Logs {
			log = append(log, l.Value)
		}
		if got := fmt.Sprint(tree.State().Value); got != c.value || fmt.Sprint(log) != c.log {
			t.Errorf("%s: value is %s, log %v, want %s, %s", name, got, log, c.value, c.log)
		}
	}
}
